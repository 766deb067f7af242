"""What each error of the driver means: whether the statement may have taken effect, and which error the caller gets."""

import ssl

import asyncpg
import pytest

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable
from clepsydra.store.postgres.calls import FAILURES, is_certainly_not_done, is_retryable, translate

# Reported by the server for the statement: it was rolled back.
ROLLED_BACK = [
    (asyncpg.DeadlockDetectedError, Unavailable),
    (asyncpg.SerializationError, Unavailable),
    (asyncpg.LockNotAvailableError, Unavailable),
    (asyncpg.QueryCanceledError, Unavailable),
    (asyncpg.TooManyConnectionsError, Unavailable),
    (asyncpg.DiskFullError, Unavailable),
    (asyncpg.CannotConnectNowError, Unavailable),
    (asyncpg.ReadOnlySQLTransactionError, Unavailable),
    (asyncpg.UndefinedTableError, Unusable),
    (asyncpg.InsufficientPrivilegeError, Unusable),
    (asyncpg.InvalidPasswordError, Unusable),
    (asyncpg.InvalidCatalogNameError, Unusable),
    (asyncpg.DataCorruptedError, Unusable),
    (asyncpg.NumericValueOutOfRangeError, Unusable),
]
# Never sent by the driver.
NOT_SENT = [
    (asyncpg.InterfaceError, Unavailable),
    (asyncpg.ClientConfigurationError, Unusable),
]
# The connection ended during the statement.
UNKNOWN = [
    (asyncpg.ConnectionDoesNotExistError, Unavailable),
    (asyncpg.AdminShutdownError, Unavailable),
    (asyncpg.CrashShutdownError, Unavailable),
    (asyncpg.InternalClientError, Unavailable),
    (ConnectionResetError, Unavailable),
    (TimeoutError, Unavailable),
    (OSError, Unavailable),
    (ssl.SSLError, Unavailable),
]


@pytest.mark.parametrize(("kind", "expected"), [*ROLLED_BACK, *NOT_SENT, *UNKNOWN])
def test_an_error_is_translated_into_one_of_the_ports(kind: type[Exception], expected: type[StoreError]) -> None:
    error = kind("why")
    assert isinstance(error, FAILURES)
    assert type(translate(error, "postgresql://db/app")) is expected
    assert is_retryable(error) is (expected is Unavailable)


@pytest.mark.parametrize(("kind", "_expected"), [*ROLLED_BACK, *NOT_SENT])
def test_what_the_server_or_the_driver_refused_was_not_done(kind: type[Exception], _expected: object) -> None:
    assert is_certainly_not_done(kind("why"))


@pytest.mark.parametrize(("kind", "_expected"), UNKNOWN)
def test_a_connection_that_ends_leaves_the_outcome_unknown(kind: type[Exception], _expected: object) -> None:
    assert not is_certainly_not_done(kind("why"))


@pytest.mark.parametrize(("kind", "_expected"), [*ROLLED_BACK, *NOT_SENT, *UNKNOWN])
def test_a_statement_that_may_be_done_fails_with_an_unknown_outcome(kind: type[Exception], _expected: object) -> None:
    assert type(translate(kind("why"), "postgresql://db/app", may_be_done=True)) is OutcomeUnknown
