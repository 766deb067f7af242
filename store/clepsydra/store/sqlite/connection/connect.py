"""How a connection to the file is opened: WAL, synced at every commit, statements prepared once."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

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

_READ_AND_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOMUTEX


def connect(path: str, *, busy_timeout_s: float | None = None) -> apsw.Connection:
    """A connection with the project's settings, to a file that exists. One thread at a time may use it.

    If the file or its folder may only be read, so does the connection.
    """
    connection = apsw.Connection(path, flags=_READ_AND_WRITE, statementcachesize=_STATEMENT_CACHE)
    connection.set_busy_handler(_busy_handler(BUSY_TIMEOUT_S if busy_timeout_s is None else busy_timeout_s))
    try:
        # The first read opens the write-ahead log.
        connection.pragma("schema_version")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        if os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
            raise
        connection.close()
        connection = _connect_read_only(path)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
    # Checkpoints have a thread of their own: see checkpoint.py.
    connection.wal_autocheckpoint(0)
    return connection


def _connect_read_only(path: str) -> apsw.Connection:
    """SQLite cannot make the shared memory of a log in a folder that it may not write to, and does without.

    Nothing can write to the file from here. While another process writes to it from elsewhere, the shared memory is
    there, and this is not needed.
    """
    log = f"{os.path.realpath(path)}-wal"
    if os.path.exists(log) and os.path.getsize(log) > 0:
        connection = apsw.Connection(path, flags=_READ, vfs="unix-none", statementcachesize=_STATEMENT_CACHE)
        connection.pragma("locking_mode", "EXCLUSIVE")
        return connection
    url = f"file:{quote(os.path.abspath(path))}?immutable=1"
    return apsw.Connection(url, flags=_READ | apsw.SQLITE_OPEN_URI, statementcachesize=_STATEMENT_CACHE)


def create_temporary_objects(connection: apsw.Connection) -> None:
    """The tables into which batches are loaded, and the views whose triggers write them."""
    for name in ("temporary_tables", "put_views", "advance_views"):
        connection.execute(STATEMENTS[name])


def _busy_handler(timeout_s: float) -> Callable[[int], bool]:
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
        return waited_s < timeout_s

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
