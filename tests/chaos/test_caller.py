"""What a client makes of errors: which tell that nothing was done, and which leave that open."""

import pytest
from google.rpc import code_pb2

from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsResponse, ItemError
from tests.chaos.caller import Answer, item_of
from tests.chaos.history import Outcome


@pytest.mark.parametrize(
    ("code", "reason", "outcome"),
    [
        (code_pb2.UNAVAILABLE, "NOT_DONE", Outcome.NOT_DONE),
        (code_pb2.RESOURCE_EXHAUSTED, "OVERLOADED", Outcome.NOT_DONE),
        (code_pb2.UNAVAILABLE, "OUTCOME_UNKNOWN", Outcome.UNKNOWN),
        (code_pb2.NOT_FOUND, "", Outcome.REFUSED),
    ],
)
def test_an_item_of_a_batch_has_an_error_of_its_own(code: int, reason: str, outcome: Outcome) -> None:
    response = BatchCreateActionsResponse()
    response.results.add(action=ScheduledAction())
    response.results.add(error=ItemError(code=code, message="why", reason=reason))
    whole = Answer(Outcome.OK, response, "")
    assert item_of(whole, 0).outcome is Outcome.OK
    assert item_of(whole, 1).outcome is outcome
