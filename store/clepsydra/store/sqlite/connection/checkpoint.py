"""Copies what was committed from the write-ahead log into the file, on a thread beside the writer's.

SQLite would do this within the commit that fills the log, and that commit would take long. Here a thread does it
whenever this process has written enough since the last checkpoint. The log starts over at the next commit, unless
another commit came in between; then it grows, and the next checkpoint follows when as much has been written again. A
checkpoint never blocks writers unless the log has grown far beyond that, because writers were always faster: then it
blocks them once, so that the log starts over.
"""

import threading

import apsw

from clepsydra.store.sqlite.connection.files import StoreFiles

# Of 8 KiB: see installation.py.
_PAGES = 1_000
_PAGES_TOO_MANY = 16 * _PAGES


class Log:
    """What is known of the write-ahead log."""

    def __init__(self) -> None:
        # All pages that this process has written to it.
        self._written = 0
        self._written_at_checkpoint = 0
        # Its length at the last checkpoint.
        self._pages = 0

    def written(self, pages: int) -> None:
        """This process has written this number of pages to it in all."""
        self._written = pages

    def is_long(self) -> bool:
        return self._written_since() >= _PAGES

    def is_too_long(self) -> bool:
        """Perhaps: it may have started over since the last checkpoint."""
        return self._pages + self._written_since() >= _PAGES_TOO_MANY

    def _written_since(self) -> int:
        return self._written - self._written_at_checkpoint

    def checkpoint_starts(self) -> None:
        """What was written until now is being copied."""
        self._written_at_checkpoint = self._written

    def checkpoint_ended(self, pages: int) -> None:
        """The log had this number of pages, of all processes; 0 if it starts over."""
        self._pages = pages


class Checkpointer:
    def __init__(self, connection: apsw.Connection, writer: apsw.Connection, files: StoreFiles) -> None:
        self._connection = connection
        self._writer = writer
        self._files = files
        self._log = Log()
        self._wanted = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="clepsydra-checkpoints", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                self._files.close(self._connection)
                return
            # A commit during the last checkpoint asked for another one.
            if self._log.is_long() and self._files.lost is None:
                self._checkpoint()

    def committed(self) -> None:
        """Count what the writer has written. A hook of SQLite could, but each commit would wait for Python."""
        pages, _ = self._writer.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
        self._log.written(pages)
        if self._log.is_long():
            self._wanted.set()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wanted.set()
            self._thread.join()

    def _checkpoint(self) -> None:
        restarts = self._log.is_too_long()
        mode = apsw.SQLITE_CHECKPOINT_RESTART if restarts else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._log.checkpoint_starts()
        try:
            pages, _ = self._connection.wal_checkpoint(mode=mode)
        except apsw.Error as error:
            # Another process makes a checkpoint, or the disk is full. The log keeps what was committed, and the next
            # checkpoint follows when as much has been written again.
            self._files.failed(error, self._connection)
            return
        self._log.checkpoint_ended(0 if restarts else pages)
