"""Whether this process may still trust the files of the store.

SQLite goes on writing to files that were deleted or replaced by name, and trusts its caches after a failed write. So a
group of writes is acknowledged only if the files are still the ones that were opened, and nothing is acknowledged any
more after the disk has failed: the kernel may drop pages that it could not write, and report the next sync as done.
"""

import errno
import os

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
        names = (os.path.abspath(path), f"{real}-wal", f"{real}-shm")
        stats = [os.stat(name) for name in names]
        self._identities = [(name, stat.st_dev, stat.st_ino) for name, stat in zip(names, stats, strict=True)]
        self._size, self._log_size, _ = (stat.st_size for stat in stats)
        self.lost: StoreLost | None = None

    def check(self, connection: apsw.Connection) -> StoreLost | None:
        """What is wrong with the files, now or since an earlier check."""
        if self.lost is None:
            problem = self._problem(connection)
            if problem is not None:
                self._lose(problem)
        return self.lost

    def failed(self, error: apsw.Error, connection: apsw.Connection) -> None:
        """A write, a sync or a checkpoint has failed. After most errors the next try may succeed."""
        if self.lost is None and _is_failure_of_disk(error, connection):
            self._lose(f"could not be written to its disk ({error})")

    def close(self, connection: apsw.Connection) -> None:
        """The last connection moves the log into the file and deletes it by name, unless the files are lost."""
        if self.check(connection) is not None:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _lose(self, problem: str) -> None:
        self.lost = StoreLost(
            f"the store {self._path} {problem}: this process acknowledges nothing more, and ends; "
            "check the disk and the file, restore a backup if need be, and start it again"
        )

    def _problem(self, connection: apsw.Connection) -> str | None:
        sizes = []
        for name, device, inode in self._identities:
            try:
                stat = os.stat(name)
            except FileNotFoundError:
                return f"has lost its file {name}, which was deleted or renamed while it was in use"
            except OSError as error:
                return f"cannot be looked at any more ({error})"
            if (stat.st_dev, stat.st_ino) != (device, inode):
                return f"has lost its file {name}, which was replaced by another while it was in use"
            sizes.append(stat.st_size)
        size, log_size, _ = sizes
        problem = self._problem_of_content(connection, size, log_size)
        self._size, self._log_size = size, log_size
        return problem

    def _problem_of_content(self, connection: apsw.Connection, size: int, log_size: int) -> str | None:
        _, header = connection.read("main", 0, 0, _HEADER_BYTES)
        if header[:16] != _MAGIC or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
            return "was overwritten while it was in use"
        if size < self._size:
            # VACUUM and a checkpoint make the file smaller too, but not smaller than its header says.
            pages = int.from_bytes(header[28:32], "big")
            if size < pages * connection.pragma("page_size"):
                return "was truncated while it was in use"
        if log_size < self._log_size:
            # So does a checkpoint of another process that truncates the log, after which the log has few pages.
            log_pages, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
            if log_size < log_pages * connection.pragma("page_size"):
                return "has lost a part of its write-ahead log, which was truncated while it was in use"
        return None


def _is_failure_of_disk(error: apsw.Error, connection: apsw.Connection) -> bool:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return True
    code: int = getattr(error, "extendedresult", apsw.SQLITE_IOERR)
    if not isinstance(error, apsw.IOError) or code in _HARMLESS:
        return False
    return not (code == apsw.SQLITE_IOERR_WRITE and connection.system_errno in _NO_SPACE)
