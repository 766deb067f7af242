"""Every error of the SDK has a meaning, and "certainly not done" is never said without evidence."""

import inspect

import grpc
import pytest
import ydb

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import SECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable, Unusable, WrongUrl
from clepsydra.store.ydb.errors import Failed, Nature, after_sending, before_sending, given_up
from clepsydra.store.ydb.location import locate

SDK_ERRORS = [
    kind
    for _, kind in inspect.getmembers(ydb.issues, inspect.isclass)
    if issubclass(kind, ydb.Error) and kind is not ydb.issues.SessionPoolClosed
]
ABORTED = {ydb.issues.Aborted}
NOT_DONE = {ydb.issues.Overloaded, ydb.issues.BadSession, ydb.issues.SessionBusy}
HOPELESS = {
    ydb.issues.BadRequest,
    ydb.issues.GenericError,
    ydb.issues.PreconditionFailed,
    ydb.issues.SchemeError,
    ydb.issues.Unauthenticated,
    ydb.issues.Unauthorized,
    ydb.issues.Unimplemented,
    ydb.issues.Unsupported,
}


@pytest.mark.parametrize("kind", SDK_ERRORS)
def test_after_sending_everything_is_unknown_unless_the_server_said_no(kind: type[ydb.Error]) -> None:
    nature = after_sending(kind("so it was")).nature
    if kind in ABORTED:
        assert nature is Nature.ABORTED
    elif kind in NOT_DONE:
        assert nature is Nature.NOT_DONE
    elif kind in HOPELESS:
        assert nature is Nature.HOPELESS
    else:
        assert nature is Nature.UNKNOWN


@pytest.mark.parametrize("kind", SDK_ERRORS)
def test_before_sending_nothing_is_unknown(kind: type[ydb.Error]) -> None:
    assert before_sending(kind("so it was")).nature in (Nature.NOT_DONE, Nature.HOPELESS)


def test_what_is_no_error_of_the_sdk_is_judged_by_where_it_happened() -> None:
    for error in (TimeoutError(), RuntimeError("closed"), grpc.RpcError()):
        assert before_sending(error).nature is Nature.NOT_DONE
        assert after_sending(error).nature is Nature.UNKNOWN


def test_a_put_that_is_too_late_is_known_by_its_words_whatever_the_status() -> None:
    message = "Condition violated: clepsydra: a put is too late"
    for kind in (ydb.issues.PreconditionFailed, ydb.issues.GenericError, ydb.issues.InternalError):
        assert after_sending(kind(message)).nature is Nature.TOO_LATE


def test_what_a_caller_is_told() -> None:
    told = {
        (Nature.NOT_DONE, False): Unavailable,
        (Nature.ABORTED, False): Unavailable,
        (Nature.HOPELESS, False): Unusable,
        (Nature.NOT_DONE, True): OutcomeUnknown,
        (Nature.HOPELESS, True): OutcomeUnknown,
        (Nature.UNKNOWN, True): OutcomeUnknown,
    }
    for (nature, may_be_done), kind in told.items():
        error = given_up(Failed(nature, "reason"), "grpc://host/path", may_be_done=may_be_done)
        assert type(error) is kind
        assert "grpc://host/path" in str(error)


def test_a_call_ends_before_it_may_no_longer_be_retried() -> None:
    limits = locate("ydb://host/local?timeout_ms=5000").limits
    # The last try waits for a session, then for the answer, then for the SDK to clean up.
    last_s = 2 * limits.timeout_s + 1.0
    assert (limits.retry_s + last_s) * SECOND_US < CALL_RETRY_US
    with pytest.raises(WrongUrl):
        locate("ydb://host/local?timeout_ms=5001")
