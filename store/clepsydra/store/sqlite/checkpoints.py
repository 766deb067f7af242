"""Moves what was committed from the write-ahead log into the file, beside the writer and not in its way.

SQLite would do it within whichever commit fills the log, and that commit would wait for it. Here a thread of its own
does it whenever this process has written enough since the last time. The log starts over at the next commit, unless
another came in the midst; then it grows on, and is moved when as much has been written again. It never blocks writers
unless the log has grown far beyond that, because they were always faster: then it makes them wait once, so that the log
starts over.
"""

import threading

import apsw

# Of 8 KiB: see installation.py.
_PAGES = 1_000
_PAGES_TOO_MANY = 16 * _PAGES


class Log:
    """What is known of the write-ahead log."""

    def __init__(self) -> None:
        # Of all pages that this process has written to it, ever.
        self._written = 0
        self._written_when_moved = 0
        # As of when it was last moved.
        self._pages = 0

    def written(self, pages: int) -> None:
        """This process has written so many pages to it since it was opened."""
        self._written = pages

    def is_long(self) -> bool:
        return self._written_since() >= _PAGES

    def is_too_long(self) -> bool:
        """Perhaps: it may have started over since it was last moved."""
        return self._pages + self._written_since() >= _PAGES_TOO_MANY

    def _written_since(self) -> int:
        return self._written - self._written_when_moved

    def moving(self) -> None:
        """What was written until now is being moved."""
        self._written_when_moved = self._written

    def moved(self, pages: int) -> None:
        """So many pages were in it, by whomever; 0 if it starts over."""
        self._pages = pages


class Checkpoints:
    def __init__(self, connection: apsw.Connection, writer: apsw.Connection) -> None:
        self._connection = connection
        self._writer = writer
        self._log = Log()
        self._wanted = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="clepsydra-checkpoints", daemon=True)
        self._thread.start()

    def committed(self) -> None:
        """See how much the writer has written: a hook would tell, but each commit would wait for Python to listen."""
        pages, _ = self._writer.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
        self._log.written(pages)
        if self._log.is_long():
            self._wanted.set()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                self._connection.close()
                return
            # A commit in the midst of the last checkpoint asked for another one.
            if self._log.is_long():
                self._checkpoint()

    def _checkpoint(self) -> None:
        restarts = self._log.is_too_long()
        mode = apsw.SQLITE_CHECKPOINT_RESTART if restarts else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._log.moving()
        try:
            pages, _ = self._connection.wal_checkpoint(mode=mode)
        except apsw.Error:
            # Another process is at it, or the disk is in trouble. The log keeps what was committed, and is moved when
            # as much was written again.
            return
        self._log.moved(0 if restarts else pages)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wanted.set()
            self._thread.join()
