"""The port on SQLite: one thread writes, another one reads beside it.

Each group of calls has its file here, and its statements in the file of the same name in the folder `sql`.
"""

import apsw

from clepsydra.core.clock import Clock
from clepsydra.store.sqlite import installation
from clepsydra.store.sqlite.advance import Advances
from clepsydra.store.sqlite.audit import Audits
from clepsydra.store.sqlite.connection.checkpoint import Checkpointer
from clepsydra.store.sqlite.connection.connect import connect, create_temporary_objects
from clepsydra.store.sqlite.connection.errors import translate
from clepsydra.store.sqlite.connection.files import StoreFiles
from clepsydra.store.sqlite.connection.log_watch import LogWatch
from clepsydra.store.sqlite.connection.thread import ConnectionThread, InlineRunner, OperationRunner
from clepsydra.store.sqlite.connection.transaction import GroupCommit, SnapshotReads
from clepsydra.store.sqlite.inspect import Inspections
from clepsydra.store.sqlite.lock import Locks
from clepsydra.store.sqlite.put import Puts
from clepsydra.store.sqlite.read import Reads
from clepsydra.store.sqlite.wakeup import Listener
from clepsydra.store.wakeup import Wakeups

# How many operations share a commit at most: beyond that, a larger group hardly saves syncs.
_GROUP_SIZE = 128


class SqliteStore(Puts, Advances, Reads, Locks, Audits, Inspections):
    """One installation in one file. `open` checks it; `install` makes or upgrades it. Its clock is this machine's."""

    def __init__(self, shards: int, clock: Clock, writer: OperationRunner, reader: OperationRunner) -> None:
        self._shards = shards
        self._clock = clock
        self._writer = writer
        self._reader = reader
        self._wakeups = Wakeups(shards)
        self._listener: Listener | None = None
        self._checkpointer: Checkpointer | None = None

    @staticmethod
    async def install(path: str, shards: int | None) -> int:
        """Make the installation if there is none, or upgrade it; the number of shards is fixed from then on."""
        return await installation.install(path, shards)

    @classmethod
    async def open(cls, path: str, clock: Clock) -> "SqliteStore":
        shards = await installation.check(path)
        writer, reader = _connect(path), _connect(path)
        if writer.readonly("main"):
            return cls._open_read_only(path, shards, clock, writer, reader)
        checkpoints = _connect(path)
        files = StoreFiles(path)
        checkpointer = Checkpointer(checkpoints, writer, files)
        commit = GroupCommit(path, files, checkpointer.committed)
        write_thread = ConnectionThread(writer, commit, "clepsydra-writer", _GROUP_SIZE, files.close)
        reads = SnapshotReads(path, files)
        read_thread = ConnectionThread(reader, reads, "clepsydra-reader", _GROUP_SIZE, files.close)
        store = cls(shards, clock, write_thread, read_thread)
        store._checkpointer = checkpointer
        store._listener = Listener(store._wakeups, writer, write_thread, LogWatch.open(path))
        return store

    @classmethod
    def _open_read_only(
        cls, path: str, shards: int, clock: Clock, writer: apsw.Connection, reader: apsw.Connection
    ) -> "SqliteStore":
        """For commands that only read. Every write is refused."""
        write_thread = ConnectionThread(writer, GroupCommit(path, None), "clepsydra-writer", _GROUP_SIZE)
        read_thread = ConnectionThread(reader, SnapshotReads(path, None), "clepsydra-reader", _GROUP_SIZE)
        return cls(shards, clock, write_thread, read_thread)

    @classmethod
    async def open_inline(cls, path: str, clock: Clock) -> "SqliteStore":
        """Without threads, and without syncs of the disk: for simulations."""
        shards = await installation.check(path)
        writer, reader = _connect(path), _connect(path)
        writer.pragma("synchronous", "OFF")
        return cls(
            shards,
            clock,
            InlineRunner(writer, GroupCommit(path, None)),
            InlineRunner(reader, SnapshotReads(path, None)),
        )

    @property
    def shards(self) -> int:
        return self._shards

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._wakeups.wake_all()
        self._writer.close()
        self._reader.close()
        if self._checkpointer is not None:
            self._checkpointer.close()

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await (self._listener or self._wakeups).wait(shard_id, timeout_s)


def _connect(path: str) -> apsw.Connection:
    try:
        connection = connect(path)
        create_temporary_objects(connection)
    except apsw.Error as error:
        raise translate(error, path) from error
    return connection
