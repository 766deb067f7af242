"""How a connection to the file is opened: WAL, synced at every commit, statements prepared once."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw

from clepsydra.store.statements import Statements

QUERIES = Statements.of_package("clepsydra.store.sqlite", ".sql")

# "clps": says that a file is an installation of Clepsydra.
APPLICATION_ID = 0x636C7073

Bindings = Sequence[Any] | Mapping[str, Any]

BUSY_TIMEOUT_S = 5.0
# Each number of rows that are written together has a statement of its own: see batches.py.
_STATEMENT_CACHE = 400
_PAGE_CACHE_KIB = 16 * 1024


def connect(path: str, *, create: bool = False) -> apsw.Connection:
    """A connection with the project's settings. It may be used by one thread at a time."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(path, flags=flags, statementcachesize=_STATEMENT_CACHE)
    connection.set_busy_handler(_patience())
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
    # Checkpoints have a thread of their own: see checkpoints.py.
    connection.wal_autocheckpoint(0)
    return connection


def _patience() -> Callable[[int], bool]:
    """Waits for another process's write lock in short steps: SQLite's own handler sleeps for up to 100 ms.

    An event that is never set is a sleep that lets other threads run.
    """
    never = threading.Event()
    waited_s = 0.0

    def wait(tries: int) -> bool:
        nonlocal waited_s
        if tries == 0:
            waited_s = 0.0
        pause_s: float = min(0.0002 * 2 ** min(tries, 10), 0.01)
        waited_s += pause_s
        never.wait(pause_s)
        return waited_s < BUSY_TIMEOUT_S

    return wait


def run(connection: apsw.Connection, name: str, bindings: Bindings = ()) -> None:
    """Run a named statement."""
    connection.execute(QUERIES[name], bindings)


def fetch(connection: apsw.Connection, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
    """All rows of a named statement."""
    return connection.execute(QUERIES[name], bindings).fetchall()


def value(connection: apsw.Connection, name: str, bindings: Bindings = ()) -> Any:
    """What a named statement yields: a value if its only row has one column, None if there is no row."""
    return connection.execute(QUERIES[name], bindings).get
