"""Responses built from encoded parts are what protobuf would have encoded."""

import random

from hypothesis import given
from hypothesis import strategies as st

from clepsydra.core.times import timestamp
from clepsydra.scheduler.api.responses import encode_action, encode_results, to_message
from clepsydra.scheduler.codec import decode, encode, with_applied_requests, with_removable_time
from clepsydra.scheduler.errors import NotFound
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import AppliedRequest, ScheduledAction, Status
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsResponse
from clepsydra.v1.scheduler_pb2 import ItemError as Error

# Lengths around those at which the length itself takes one byte more.
_LENGTHS = (0, 1, 60, 127, 128, 300, 16_383, 16_384, 70_000)


@st.composite
def actions(draw: st.DrawFn) -> ScheduledAction:
    action = ScheduledAction()
    action.meta.id = draw(st.text("abc", min_size=1, max_size=5))
    action.meta.guid = "0" * 32
    # No more than one: the entries of a map are encoded in any order.
    action.meta.labels.update(draw(st.dictionaries(st.text("kl", max_size=3), st.text(max_size=5), max_size=1)))
    action.spec.handler.name = "f"
    action.spec.handler.payload = random.Random(1).randbytes(draw(st.sampled_from(_LENGTHS)))
    action.status.CopyFrom(Status(state=action_pb2.SCHEDULED, scheduled_time=timestamp(draw(st.integers(0, 10**15)))))
    return action


@given(actions())
def test_a_response_is_the_action_encoded(action: ScheduledAction) -> None:
    assert encode_action(encode(action)) == action.SerializeToString()
    assert to_message(encode(action)) == action


def test_what_an_action_does_not_have_is_left_out() -> None:
    action = ScheduledAction()
    action.meta.id = "a"

    assert encode_action(encode(action)) == action.SerializeToString()


@given(st.lists(actions() | st.builds(Error, code=st.integers(1, 16), message=st.text()), max_size=4))
def test_the_results_of_a_batch_are_its_response_encoded(outcomes: list[ScheduledAction | Error]) -> None:
    response = BatchCreateActionsResponse()
    for outcome in outcomes:
        result = response.results.add()
        if isinstance(outcome, ScheduledAction):
            result.action.CopyFrom(outcome)
        else:
            result.error.CopyFrom(outcome)

    errors = {place: outcome for place, outcome in enumerate(outcomes) if isinstance(outcome, Error)}
    results = [encode(each) if isinstance(each, ScheduledAction) else NotFound("a") for each in outcomes]

    assert encode_results(results, lambda _error, place: errors[place]) == response.SerializeToString()


@given(actions(), st.integers(1, 10**15), st.lists(st.builds(AppliedRequest, request_id=st.text()), min_size=1))
def test_what_only_the_store_sees_is_added_to_what_is_encoded(
    action: ScheduledAction, removable_us: int, applied: list[AppliedRequest]
) -> None:
    stored = with_removable_time(with_applied_requests(encode(action), applied), removable_us)

    assert Status.FromString(stored.status).removable_time == timestamp(removable_us)
    assert decode(stored) == (action, tuple(applied))
