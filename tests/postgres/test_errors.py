"""What each error of the driver means: whether the statement may have been carried out, and what the caller is told."""

import ssl

import asyncpg
import pytest

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable
from clepsydra.store.postgres.errors import FAILURES, certainly_not_done, is_worth_another_try, translated

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
# The connection ended, and with it all knowledge.
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


@pytest.mark.parametrize(("kind", "told"), [*ROLLED_BACK, *NOT_SENT, *UNKNOWN])
def test_an_error_is_told_as_one_of_the_ports_few(kind: type[Exception], told: type[StoreError]) -> None:
    error = kind("why")
    assert isinstance(error, FAILURES)
    assert type(translated(error, "postgresql://db/app")) is told
    assert is_worth_another_try(error) is (told is Unavailable)


@pytest.mark.parametrize(("kind", "_told"), [*ROLLED_BACK, *NOT_SENT])
def test_what_the_server_or_the_driver_refused_was_not_done(kind: type[Exception], _told: object) -> None:
    assert certainly_not_done(kind("why"))


@pytest.mark.parametrize(("kind", "_told"), UNKNOWN)
def test_a_connection_that_ends_leaves_the_outcome_unknown(kind: type[Exception], _told: object) -> None:
    assert not certainly_not_done(kind("why"))


@pytest.mark.parametrize(("kind", "_told"), [*ROLLED_BACK, *NOT_SENT, *UNKNOWN])
def test_after_one_try_of_unknown_outcome_every_failure_is_unknown(kind: type[Exception], _told: object) -> None:
    assert type(translated(kind("why"), "postgresql://db/app", may_be_done=True)) is OutcomeUnknown
