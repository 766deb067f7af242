"""The stream of log lines. A line that cannot be written is lost and counted: a full disk must not stop the work.

The next line that can be written reports the number of lost lines.
"""

from typing import Any, TextIO

from structlog.typing import EventDict


class LogStream:
    """The part of a text stream that loggers use."""

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
            # The buffer keeps its lines. They are written with the next line, or counted then.
            self._lost += 1

    def isatty(self) -> bool:
        return self._stream.isatty()

    def add_lost_lines(self, _logger: Any, _method: str, event: EventDict) -> EventDict:
        """A processor of structlog: adds the number of lost lines to an event."""
        if self._lost:
            event["lines_lost"] = self._lost
        return event
