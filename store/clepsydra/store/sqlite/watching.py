"""Tells when somebody writes to the write-ahead log, by Linux's inotify: until then, waiting costs nothing at all."""

import asyncio
import sys
from collections.abc import Callable


class LogWatch:
    """A watch on the log of one file, for one event loop. It tells that something was written, and nothing of what."""

    def __init__(self, path: str) -> None:
        """Raises OSError where the kernel, the file system or the user's limits do not allow it."""
        if sys.platform != "linux":
            raise OSError("inotify is of Linux alone")
        # Not installed elsewhere.
        from inotify_simple import INotify, flags

        self._notify = INotify(nonblocking=True)
        try:
            self._notify.add_watch(f"{path}-wal", flags.MODIFY)
        except OSError:
            self._notify.close()
            raise

    def wait(self, written: Callable[[], None]) -> None:
        """Call it once, from the event loop, when the log is written to, or was since it was last told."""
        asyncio.get_running_loop().add_reader(self._notify.fileno(), self._tell, written)

    def close(self) -> None:
        if not self._notify.closed:
            asyncio.get_running_loop().remove_reader(self._notify.fileno())
            self._notify.close()

    def _tell(self, written: Callable[[], None]) -> None:
        asyncio.get_running_loop().remove_reader(self._notify.fileno())
        # To the kernel, writes that follow each other are one event: there is never much to read.
        self._notify.read(timeout=0)
        written()
