"""How a connection to the file is opened: WAL, synced at every commit, statements prepared once."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw

from clepsydra.store.statements import Statements

STATEMENTS = Statements.of_package("clepsydra.store.sqlite", ".sql")

# "clps" in the header of a file says that it is an installation of Clepsydra.
APPLICATION_ID = 0x636C7073

Bindings = Sequence[Any] | Mapping[str, Any]

BUSY_TIMEOUT_S = 5.0
# Each number of rows that are written together has a statement of its own: see multi_row_insert.py.
_STATEMENT_CACHE = 400
_PAGE_CACHE_KIB = 16 * 1024


def connect(path: str, *, create: bool = False) -> apsw.Connection:
    """A connection with the project's settings. One thread at a time may use it."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(path, flags=flags, statementcachesize=_STATEMENT_CACHE)
    connection.set_busy_handler(_busy_handler())
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
    # Checkpoints have a thread of their own: see checkpoint.py.
    connection.wal_autocheckpoint(0)
    return connection


def create_temporary_objects(connection: apsw.Connection) -> None:
    """The tables into which batches are loaded, and the views whose triggers write them."""
    for name in ("temporary_tables", "put_views", "advance_views"):
        connection.execute(STATEMENTS[name])


def _busy_handler() -> Callable[[int], bool]:
    """Waits for another process's write lock in short steps: SQLite's own handler sleeps for up to 100 ms.

    Waiting for an event that is never set lets other threads run.
    """
    never = threading.Event()
    waited_s = 0.0

    def wait(failures: int) -> bool:
        nonlocal waited_s
        if failures == 0:
            waited_s = 0.0
        pause_s: float = min(0.0002 * 2 ** min(failures, 10), 0.01)
        waited_s += pause_s
        never.wait(pause_s)
        return waited_s < BUSY_TIMEOUT_S

    return wait


def run(connection: apsw.Connection, name: str, bindings: Bindings = ()) -> None:
    """Run a named statement."""
    connection.execute(STATEMENTS[name], bindings)


def fetch(connection: apsw.Connection, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
    """All rows of a named statement."""
    return connection.execute(STATEMENTS[name], bindings).fetchall()


def value(connection: apsw.Connection, name: str, bindings: Bindings = ()) -> Any:
    """The only row of a named statement, or its value if it has one column; None if there is no row."""
    return connection.execute(STATEMENTS[name], bindings).get
