"""PostgreSQL's errors as the port's few, with what to do about them.

What matters most is whether a statement may have been carried out. An error that the server reports for a statement
means that it was rolled back; a connection that ends while a statement is under way means that nobody knows.
"""

import ssl

import asyncpg

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable

# Whatever a call of the driver can end with.
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

# By SQLSTATE, or by its class, which is its first two characters. A later try may go well.
_UNAVAILABLE = {
    "08": "closed the connection; try again",
    "0A000": "has changed its tables; try again",
    "25006": "accepts no writes: it is a standby; name the primary, or all hosts, in the URL",
    "40": "was busy with changes of the same rows; try again",
    "53100": "cannot grow: its disk is full; free some space",
    "53300": "has no connection left; raise max_connections, or lower pool_size in the URL",
    "53": "is short of resources; look at its log",
    "55P03": "was busy with the same rows for too long; look for long transactions in pg_stat_activity",
    "57014": "did not answer within its statement timeout; look at its load and for long transactions",
    "57P03": "is starting up or shutting down; try again",
    "57": "closed the connection; try again",
    "58": "is in trouble with its system; look at its log",
}

# No later try will.
_UNUSABLE = {
    "08P01": "refused the session's settings, as PgBouncer does; name PostgreSQL itself in the URL",
    "28": "refused the login; check user, password and pg_hba.conf",
    "3D000": "has no such database; create it, or name another",
    "3F000": "has no such schema; make an installation with `clepsydra init`",
    "42501": "does not permit it to this user; grant what docs/postgres.md lists",
    "42704": "refused the session's settings; it may be too old, or not be PostgreSQL",
    "42P01": "lacks a table; make an installation with `clepsydra init`",
    "XX001": "has found its data to be corrupt; restore a backup",
    "XX002": "has found an index to be corrupt; look at its disk, and reindex",
}


def certainly_not_done(error: Exception) -> bool:
    """Whether a statement that was under way when this happened was certainly not carried out."""
    if not isinstance(error, asyncpg.PostgresError):
        # The driver did not send it.
        return isinstance(error, asyncpg.InterfaceError)
    ends_the_connection = error.sqlstate.startswith("08") or error.sqlstate in ("57P01", "57P02", "57P05")
    return not ends_the_connection


def is_worth_another_try(error: Exception) -> bool:
    return _meaning(error)[0] is Unavailable


def translated(error: Exception, shown: str, *, may_be_done: bool = False) -> StoreError:
    """What an error means to the caller, who may have to reckon with an earlier try that was carried out."""
    kind, sentence = _meaning(error)
    sentence = f"the store {shown} {sentence}"
    return OutcomeUnknown(f"{sentence}; the call may have taken effect") if may_be_done else kind(sentence)


def _meaning(error: Exception) -> tuple[type[StoreError], str]:
    if isinstance(error, asyncpg.PostgresError):
        return _meaning_of_state(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            Unusable,
            f"has a certificate that is not trusted: {error.verify_message}; check sslrootcert and the host",
        )
    if isinstance(error, asyncpg.ClientConfigurationError):
        return Unusable, f"cannot be connected to as the URL says: {error}"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return Unavailable, "has no host that accepts writes; name the primary in the URL"
    if isinstance(error, TimeoutError):
        return Unavailable, "did not answer in time; look at its load and at the network"
    return Unavailable, f"cannot be reached: {error}"


def _meaning_of_state(error: asyncpg.PostgresError) -> tuple[type[StoreError], str]:
    for key in (error.sqlstate, error.sqlstate[:2]):
        if key in _UNUSABLE:
            return Unusable, f"{_UNUSABLE[key]} ({error})"
        if key in _UNAVAILABLE:
            return Unavailable, f"{_UNAVAILABLE[key]} ({error})"
    return Unusable, f"failed: {error.sqlstate}: {error}"
