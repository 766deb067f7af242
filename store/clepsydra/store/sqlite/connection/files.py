"""Whether this process may still trust the files of the store.

SQLite goes on writing to files that were deleted or replaced by name, and trusts its caches after a failed write. So a
group of writes is acknowledged only if the files are still the ones that were opened, and nothing is acknowledged any
more after the disk has failed: the kernel may drop pages that it could not write, and report the next sync as done.
"""

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

import apsw

from clepsydra.store.errors import StoreLost
from clepsydra.store.sqlite.connection.connect import APPLICATION_ID

# The header of a SQLite file, as far as it is checked: see https://sqlite.org/fileformat.html.
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"

# Failures that say nothing about the disk: locks, memory, and the shared memory beside the file.
_HARMLESS = {
    apsw.SQLITE_IOERR_ACCESS,
    apsw.SQLITE_IOERR_BLOCKED,
    apsw.SQLITE_IOERR_CHECKRESERVEDLOCK,
    apsw.SQLITE_IOERR_LOCK,
    apsw.SQLITE_IOERR_NOMEM,
    apsw.SQLITE_IOERR_RDLOCK,
    apsw.SQLITE_IOERR_SHMLOCK,
    apsw.SQLITE_IOERR_SHMMAP,
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMSIZE,
    apsw.SQLITE_IOERR_UNLOCK,
}
# A write that failed with one of these has found no space, and did nothing else.
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StoreFiles:
    """The database, its write-ahead log and its shared memory, as they were when all connections were open."""

    def __init__(self, path: str) -> None:
        self._path = path
        # SQLite makes the other two beside the real file, if the path is a link.
        real = os.path.realpath(path)
        self._database, self._log, self._memory = (
            _File(name, stat.st_dev, stat.st_ino)
            for name in (os.path.abspath(path), f"{real}-wal", f"{real}-shm")
            for stat in [os.stat(name)]
        )
        self._size, self._log_size = self._database.checked_size(), self._log.checked_size()
        self.lost: StoreLost | None = None

    def check(self, connection: apsw.Connection) -> StoreLost | None:
        """What is wrong with the files, now or since an earlier check: before what was committed is acknowledged."""
        return self._lost_by(self._check_all, connection)

    def check_log(self, connection: apsw.Connection) -> StoreLost | None:
        """The log alone: before a commit, which would fill the hole in a log that was truncated."""
        return self._lost_by(self._check_log, connection)

    def failed(self, error: apsw.Error, connection: apsw.Connection) -> None:
        """A write, a sync or a checkpoint has failed. After most errors the next try may succeed."""
        if self.lost is None and _is_failure_of_disk(error, connection):
            self._lose(f"could not be written to its disk ({error})")

    def close(self, connection: apsw.Connection) -> None:
        """The last connection moves the log into the file and deletes it by name, unless the files are lost."""
        if self.check(connection) is not None:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _lost_by(self, check: Callable[[apsw.Connection], None], connection: apsw.Connection) -> StoreLost | None:
        if self.lost is None:
            try:
                check(connection)
            except _Damaged as damaged:
                self._lose(str(damaged))
            except apsw.Error as error:
                self.failed(error, connection)
        return self.lost

    def _lose(self, problem: str) -> None:
        self.lost = StoreLost(
            f"the store {self._path} {problem}: this process acknowledges nothing more, and ends; "
            "check the disk and the file, restore a backup if need be, and start it again"
        )

    def _check_all(self, connection: apsw.Connection) -> None:
        size = self._database.checked_size()
        _, header = connection.read("main", 0, 0, _HEADER_BYTES)
        if header[:16] != _MAGIC or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
            raise _Damaged("was overwritten while it was in use")
        if size < self._size:
            # VACUUM and a checkpoint make the file smaller too, but not smaller than its header says.
            pages = int.from_bytes(header[28:32], "big")
            if size < pages * connection.pragma("page_size"):
                raise _Damaged("was truncated while it was in use")
        self._size = size
        self._check_log(connection)
        self._memory.checked_size()

    def _check_log(self, connection: apsw.Connection) -> None:
        size = self._log.checked_size()
        if size < self._log_size:
            # A checkpoint of another process may truncate the log too, after which the log has few pages.
            pages, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
            if size < pages * connection.pragma("page_size"):
                raise _Damaged("has lost a part of its write-ahead log, which was truncated while it was in use")
        self._log_size = size


class _Damaged(Exception):
    """What is wrong with a file, as the end of a sentence about the store."""


class _File(NamedTuple):
    name: str
    device: int
    inode: int

    def checked_size(self) -> int:
        """Its size, if it is still the same file."""
        try:
            stat = os.stat(self.name)
        except FileNotFoundError:
            raise _Damaged(f"has lost its file {self.name}, which was deleted or renamed while it was in use") from None
        except OSError as error:
            raise _Damaged(f"cannot be looked at any more ({error})") from error
        if stat.st_ino != self.inode or stat.st_dev != self.device:
            raise _Damaged(f"has lost its file {self.name}, which was replaced by another while it was in use")
        return stat.st_size


def _is_failure_of_disk(error: apsw.Error, connection: apsw.Connection) -> bool:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return True
    code: int = getattr(error, "extendedresult", apsw.SQLITE_IOERR)
    if not isinstance(error, apsw.IOError) or code in _HARMLESS:
        return False
    return not (code == apsw.SQLITE_IOERR_WRITE and connection.system_errno in _NO_SPACE)
