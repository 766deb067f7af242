"""A consistent copy of a store in use, by SQLite's online backup.

The copy is of one snapshot, however long it takes: without one, SQLite would start over whenever another process
writes. While the snapshot is held, the write-ahead log cannot start over, and grows.
"""

import asyncio
import os
from collections.abc import Callable

import apsw

from clepsydra.store.errors import StoreError, Unusable
from clepsydra.store.sqlite import installation
from clepsydra.store.sqlite.connection.connect import connect
from clepsydra.store.sqlite.connection.errors import translate

# 8 MiB: some hundred steps a second, so that progress shows.
_PAGES = 1_000


def back_up(path: str, target: str, progress: Callable[[int, int], None]) -> int:
    """Copy the store to a file, which must not exist yet. Returns its size in bytes.

    `progress` receives the number of bytes that are copied, and of all. The file appears under its name when it is
    complete and on disk. It blocks, so no event loop may run.
    """
    asyncio.run(installation.check(path))
    if os.path.lexists(target):
        raise FileExistsError(target)
    partial = f"{target}.{os.getpid()}.partial"
    try:
        _create(partial)
        try:
            _copy(path, partial, progress)
            asyncio.run(installation.check(partial))
            _publish(partial, target)
        finally:
            for name in (partial, f"{partial}-wal", f"{partial}-shm", f"{partial}-journal"):
                if os.path.exists(name):
                    os.unlink(name)
    except FileExistsError:
        raise
    except OSError as error:
        raise Unusable(f"the backup {target} cannot be written: {error.strerror}") from error
    return os.path.getsize(target)


def _create(partial: str) -> None:
    """Others may not read it, as with the store itself."""
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _copy(path: str, partial: str, progress: Callable[[int, int], None]) -> None:
    try:
        source = connect(path)
        copy = apsw.Connection(partial, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            page_bytes = source.pragma("page_size")
            # The snapshot of the first read is held until the end of the transaction.
            source.execute("BEGIN")
            source.pragma("schema_version")
            with copy.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES)
                    progress((backup.page_count - backup.remaining) * page_bytes, backup.page_count * page_bytes)
        finally:
            copy.close()
            source.close()
    except apsw.Error as error:
        raise _explained(error, path, partial) from error


def _explained(error: apsw.Error, path: str, partial: str) -> StoreError:
    if isinstance(error, apsw.FullError):
        return Unusable(f"the backup {partial} cannot grow: its disk is full; free some space and try again")
    return translate(error, path)


def _publish(partial: str, target: str) -> None:
    """Give the file its name, unless that was taken meanwhile, and sync the folder that has the name."""
    try:
        os.link(partial, target)
    except PermissionError:
        # A file system without hard links.
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        os.rename(partial, target)
    folder = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
