"""From errors to statuses."""

import pytest
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import BadRequest

from clepsydra.core.validation.rules import FieldViolation
from clepsydra.scheduler import errors
from clepsydra.scheduler.api.grpc_status import CODES, item_error_of, status_of
from clepsydra.scheduler.errors import InvalidArgument, NotFound, SchedulerError
from clepsydra.v1.scheduler_pb2 import ItemError


def test_the_table_knows_every_error() -> None:
    assert set(CODES) == set(SchedulerError.__subclasses__())


@pytest.mark.parametrize("kind", [errors.NotFound, errors.AlreadyExists, errors.EtagMismatch, errors.Damaged])
def test_errors_about_an_action_name_it(kind: type[SchedulerError]) -> None:
    assert "'user-17'" in status_of(kind("user-17")).message


def test_nothing_is_an_error_that_a_user_could_not_understand() -> None:
    assert {code for code, _ in CODES.values()}.isdisjoint({"OK", "UNKNOWN", "INTERNAL", "CANCELLED"})


def test_what_is_told_of_many_violations_fits_into_the_headers_of_an_answer() -> None:
    """Clients take about 8 KiB; on the way, binary headers grow by a third and other letters than ASCII threefold."""
    error = InvalidArgument((FieldViolation("ä" * 10_000, "ö" * 10_000),) * 1000)

    status = status_of(error)

    assert 3 * len(status.message.encode()) + status.ByteSize() * 4 / 3 < 7 * 1024
    details = BadRequest()
    assert status.details[0].Unpack(details)
    assert len(details.field_violations) > 5


def test_one_violation_is_told_in_full() -> None:
    status = status_of(InvalidArgument((FieldViolation("action.spec.retry.jitter", "must be a number from 0 to 1"),)))

    assert status.message == "action.spec.retry.jitter: must be a number from 0 to 1"


def test_the_message_names_the_first_violation() -> None:
    violations = (FieldViolation("a", "is required"), FieldViolation("b", "is required"))

    assert str(InvalidArgument(violations)) == "a: is required (and 1 more)"


def test_what_is_wrong_with_the_whole_request_needs_no_path() -> None:
    assert str(InvalidArgument((FieldViolation("", "cannot be read"),))) == "the request cannot be read"


def test_the_error_of_an_item_says_what_a_status_would() -> None:
    error = InvalidArgument((FieldViolation("action.spec.retry.jitter", "is wrong"), FieldViolation("", "is odd")))

    item = item_error_of(error, 3)

    assert (item.code, item.reason) == (Code.Value("INVALID_ARGUMENT"), "INVALID_ARGUMENT")
    assert item.message == "requests[3].action.spec.retry.jitter: is wrong (and 1 more)"
    assert [(each.field, each.description) for each in item.field_violations] == [
        ("requests[3].action.spec.retry.jitter", "is wrong"),
        ("requests[3]", "is odd"),
    ]
    missing = ItemError(code=Code.Value("NOT_FOUND"), message="there is no action 'a'", reason="NOT_FOUND")
    assert item_error_of(NotFound("a"), 0) == missing
