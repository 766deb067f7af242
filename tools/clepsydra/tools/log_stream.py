"""Where log lines go. A line that cannot be written is lost and counted: a full disk must not stop the work.

The next line that can be written tells how many were lost.
"""

from typing import Any, TextIO

from structlog.typing import EventDict


class LogStream:
    """As much of a text stream as loggers use."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0

    def write(self, line: str) -> int:
        try:
            return self._stream.write(line)
        except OSError:
            self._lost += 1
            return len(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            # What a buffer holds back is written with the next line, or counted then.
            self._lost += 1

    def isatty(self) -> bool:
        return self._stream.isatty()

    def tell_losses(self, _logger: Any, _method: str, event: EventDict) -> EventDict:
        """A processor of structlog."""
        if self._lost:
            event["lines_lost"] = self._lost
        return event
