"""Moves what was committed from the write-ahead log into the file, beside the writer and not in its way.

SQLite would do it within whichever commit fills the log, and that commit would wait for it. Here a thread of its own
does it whenever enough has gathered. It never blocks writers unless the log has grown far beyond that, because they
were always faster: then it makes them wait once, so that the log starts over.
"""

import threading

import apsw

_PAGES = 1_000
_PAGES_TOO_MANY = 32 * _PAGES


class Checkpoints:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._pages = 0
        self._wanted = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="clepsydra-checkpoints", daemon=True)
        self._thread.start()

    def watch(self, writer: apsw.Connection) -> None:
        """Learn from the writer's connection how long the log has become."""
        writer.set_wal_hook(self._committed)

    def _committed(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        if pages >= _PAGES:
            self._wanted.set()
        return apsw.SQLITE_OK

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                self._connection.close()
                return
            too_many = self._pages >= _PAGES_TOO_MANY
            mode = apsw.SQLITE_CHECKPOINT_RESTART if too_many else apsw.SQLITE_CHECKPOINT_PASSIVE
            try:
                self._connection.wal_checkpoint(mode=mode)
            except apsw.Error:
                # Another process is at it, or the disk is in trouble; the log keeps what was committed, and
                # the next commit asks again.
                continue

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wanted.set()
            self._thread.join()
