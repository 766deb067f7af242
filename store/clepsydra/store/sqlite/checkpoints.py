"""Moves what was committed from the write-ahead log into the file, beside the writer and not in its way.

SQLite would do it within whichever commit fills the log, and that commit would wait for it. Here a thread of its own
does it whenever enough has gathered since the last time. The log starts over at the next commit, unless another came in
the midst; then it grows on, and is moved when as much has gathered again. It never blocks writers unless the log has
grown far beyond that, because they were always faster: then it makes them wait once, so that the log starts over.
"""

import threading

import apsw

_PAGES = 1_000
_PAGES_TOO_MANY = 32 * _PAGES


class Log:
    """What is known of the write-ahead log. One that did not start over is not moved at every commit."""

    def __init__(self) -> None:
        self._pages = 0
        self._moved = 0

    def committed(self, pages: int) -> None:
        """The log has so many pages now."""
        if pages < self._pages:
            # It has started over.
            self._moved = 0
        self._pages = pages

    def moved(self, pages: int) -> None:
        """So many of its pages are in the file now."""
        self._moved = pages

    def is_long(self) -> bool:
        return self._pages - self._moved >= _PAGES

    def is_too_long(self) -> bool:
        return self._pages >= _PAGES_TOO_MANY


class Checkpoints:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._log = Log()
        self._wanted = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="clepsydra-checkpoints", daemon=True)
        self._thread.start()

    def watch(self, writer: apsw.Connection) -> None:
        """Learn from the writer's connection how long the log has become."""
        writer.set_wal_hook(self._committed)

    def _committed(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._log.committed(pages)
        if self._log.is_long():
            self._wanted.set()
        return apsw.SQLITE_OK

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
        too_long = self._log.is_too_long()
        mode = apsw.SQLITE_CHECKPOINT_RESTART if too_long else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            _, moved = self._connection.wal_checkpoint(mode=mode)
        except apsw.Error:
            # Another process is at it, or the disk is in trouble; the log keeps what was committed, and the next
            # commit asks again.
            return
        self._log.moved(moved)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wanted.set()
            self._thread.join()
