"""Every error of the SDK has a meaning, and "certainly not done" is never said without evidence."""

import inspect
import random
from typing import Any

import grpc
import pytest
import ydb

from clepsydra.core.ids import Ids
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import SECOND_US
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable, WrongUrl
from clepsydra.store.ydb.connection.errors import TOO_LATE, Aborted, TooLate, harmless_failure, write_failure
from clepsydra.store.ydb.retry import Retry
from clepsydra.store.ydb.url import parse_url
from tests.ydb.sample_installation import open_store, running_endpoint
from tests.ydb_endpoint.messages import issue_pb2

SDK_ERRORS = [
    kind
    for _, kind in inspect.getmembers(ydb.issues, inspect.isclass)
    if issubclass(kind, ydb.Error) and kind is not ydb.issues.SessionPoolClosed
]
REFUSALS: dict[type[ydb.Error], type[StoreError]] = {
    ydb.issues.Aborted: Aborted,
    ydb.issues.Overloaded: Unavailable,
    ydb.issues.BadSession: Unavailable,
    ydb.issues.SessionBusy: Unavailable,
    ydb.issues.BadRequest: Unusable,
    ydb.issues.GenericError: Unusable,
    ydb.issues.PreconditionFailed: Unusable,
    ydb.issues.SchemeError: Unusable,
    ydb.issues.Unauthenticated: Unusable,
    ydb.issues.Unauthorized: Unusable,
    ydb.issues.Unimplemented: Unusable,
    ydb.issues.Unsupported: Unusable,
}


@pytest.mark.parametrize("kind", SDK_ERRORS)
def test_a_failed_write_is_unknown_unless_the_server_refused_it(kind: type[ydb.Error]) -> None:
    assert type(write_failure(kind("the reason"))) is REFUSALS.get(kind, OutcomeUnknown)


@pytest.mark.parametrize("kind", SDK_ERRORS)
def test_what_changed_nothing_is_never_unknown(kind: type[ydb.Error]) -> None:
    assert type(harmless_failure(kind("the reason"))) in (Unavailable, Unusable)


def test_the_meaning_of_other_errors_depends_on_what_failed() -> None:
    for error in (TimeoutError(), RuntimeError("closed"), grpc.RpcError()):
        assert type(harmless_failure(error)) is Unavailable
        assert type(write_failure(error)) is OutcomeUnknown


def test_a_late_put_is_recognised_by_its_message_whatever_the_status() -> None:
    message = "Condition violated: clepsydra: a put is too late"
    for kind in (ydb.issues.PreconditionFailed, ydb.issues.GenericError, ydb.issues.InternalError):
        assert type(write_failure(kind(message))) is TooLate


def issue(message: str, *causes: Any) -> Any:
    return issue_pb2.IssueMessage(message=message, issues=causes)


def test_the_cause_of_an_error_comes_first() -> None:
    """The server nests its issues, and the outermost says only what it was doing."""
    nested = issue("Type annotation", issue("At function: KiReadTable!", issue("Cannot find table 'x'")))
    shown = str(harmless_failure(ydb.issues.SchemeError("raw", [nested])))
    assert shown.startswith("SCHEME_ERROR Cannot find table 'x'; At function: KiReadTable!; Type annotation (")


def test_every_branch_of_nested_issues_is_shown_once() -> None:
    branches = [issue("Execution", issue("first"), issue("second")), issue("Execution", issue("first"))]
    assert str(write_failure(ydb.issues.GenericError("raw", branches))) == "GENERIC_ERROR first; second; Execution"


def test_a_late_put_is_recognised_in_nested_issues() -> None:
    nested = issue("Execution", issue("Terminate was called, reason(42): Condition violated: " + TOO_LATE))
    assert type(write_failure(ydb.issues.PreconditionFailed("raw", [nested]))) is TooLate


def test_a_batch_that_is_too_large_for_the_servers_memory_was_not_done() -> None:
    nested = issue("Execution", issue("Intermediate data materialization exceeded size limit (60 > 50)."))
    assert type(write_failure(ydb.issues.PreconditionFailed("raw", [nested]))) is Aborted


async def test_a_missing_table_is_named() -> None:
    async with running_endpoint() as endpoint, open_store(endpoint) as store:
        path = f"{endpoint.engine.database.root}/clepsydra/scheduled_actions"
        del endpoint.engine.database.tables[path]
        endpoint.engine.database.schema_version += 1
        with pytest.raises(Unusable, match=f"SCHEME_ERROR Cannot find table '{path}'"):
            await store.get(["a"])


@pytest.mark.parametrize(
    ("tries", "kind"),
    [
        ([Unavailable], Unavailable),
        ([Aborted], Unavailable),
        ([Unusable], Unusable),
        ([OutcomeUnknown], OutcomeUnknown),
        ([OutcomeUnknown, Unavailable], OutcomeUnknown),
        ([OutcomeUnknown, Unusable], OutcomeUnknown),
    ],
)
async def test_the_error_of_a_call_is_about_all_its_tries(
    tries: list[type[StoreError]], kind: type[StoreError]
) -> None:
    location = parse_url("ydb://host/local?path=timers")
    retry = Retry(location._replace(limits=location.limits._replace(retry_s=0.05)), Ids(random.Random(1)))
    errors = iter(tries)

    async def fail() -> None:
        raise next(errors, tries[-1])("the reason")

    with pytest.raises(StoreError, match="the store grpc://host:2136/local/timers failed: the reason") as caught:
        await retry.call(fail)
    assert type(caught.value) is kind


def test_a_call_ends_before_it_may_no_longer_be_retried() -> None:
    limits = parse_url("ydb://host/local?timeout_ms=5000").limits
    # The last try waits for a session, then for the response, then for the SDK to clean up.
    last_s = 2 * limits.timeout_s + 1.0
    assert (limits.retry_s + last_s) * SECOND_US < CALL_RETRY_US
    with pytest.raises(WrongUrl):
        parse_url("ydb://host/local?timeout_ms=5001")
