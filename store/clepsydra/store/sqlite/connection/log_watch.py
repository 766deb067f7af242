"""Reports writes to the write-ahead log, by Linux's inotify: until then, waiting costs nothing."""

import asyncio
import os
import sys
from collections.abc import Callable


class LogWatch:
    """A watch on the log of one file, for one event loop. It reports that something was written, and not what."""

    def __init__(self, path: str) -> None:
        """Raises OSError where the kernel, the file system or the user's limits do not allow it."""
        if sys.platform != "linux":
            raise OSError("only Linux has inotify")
        # Not installed elsewhere.
        from inotify_simple import INotify, flags

        self._notify = INotify(nonblocking=True)
        try:
            self._notify.add_watch(f"{os.path.realpath(path)}-wal", flags.MODIFY)
        except OSError:
            self._notify.close()
            raise

    @classmethod
    def open(cls, path: str) -> "LogWatch | None":
        """None where a watch is not possible."""
        try:
            return cls(path)
        except OSError:
            return None

    def wait(self, written: Callable[[], None]) -> None:
        """Call `written` once, from the event loop, when the log is written to, or if it was since the last call."""
        asyncio.get_running_loop().add_reader(self._notify.fileno(), self._report, written)

    def close(self) -> None:
        if not self._notify.closed:
            asyncio.get_running_loop().remove_reader(self._notify.fileno())
            self._notify.close()

    def _report(self, written: Callable[[], None]) -> None:
        asyncio.get_running_loop().remove_reader(self._notify.fileno())
        # The kernel merges writes that follow each other into one event: there is never much to read.
        self._notify.read(timeout=0)
        written()
