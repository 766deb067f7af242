"""The log of a server on stderr: text for people on a terminal, JSON elsewhere.

Lines that handlers and libraries write through Python's `logging` look the same. Whatever others have written, an
error's text or a message, cannot begin a line or make the terminal obey it; and no traceback shows the values of
variables, which contain payloads, headers and passwords of users.
"""

import logging
import sys
import traceback
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from clepsydra.tools.format.json_output import json_text
from clepsydra.tools.format.terminal import allows_escapes
from clepsydra.tools.format.text import printable
from clepsydra.tools.process.log_stream import LogStream
from clepsydra.tools.settings.model import LogSettings

_MANY_LINES = frozenset({"exception", "stack"})

_SHARED: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]

_JSON_TRACEBACKS = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


def configure_logs(settings: LogSettings) -> FilteringBoundLogger:
    """Set up logging for this process, once, and return its logger."""
    stream = LogStream(sys.stderr)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    processors = [stream.add_lost_lines, *_rendering(settings, stream)]
    structlog.configure(
        processors=[*_SHARED, *processors],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", stream)),
        cache_logger_on_first_use=True,
    )
    _configure_libraries(processors, stream, level)
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def _rendering(settings: LogSettings, stream: LogStream) -> list[Processor]:
    if settings.format == "text" or (settings.format == "auto" and stream.isatty()):
        console = structlog.dev.ConsoleRenderer(
            colors=allows_escapes(stream), exception_formatter=structlog.dev.plain_traceback, sort_keys=False
        )
        return [structlog.processors.ExceptionRenderer(_plain_traceback), _escape, console]
    return [_JSON_TRACEBACKS, _order_keys, structlog.processors.JSONRenderer(serializer=_json)]


def _json(event: EventDict, **_arguments: Any) -> str:
    return json_text(event, default=repr)


def _escape(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Values in one line each. The lines of a traceback or stack are indented: none looks like a line of the log."""
    return {
        key: _indented(value) if key in _MANY_LINES else printable(value) if isinstance(value, str) else _shown(value)
        for key, value in event.items()
    }


def _shown(value: Any) -> Any:
    """What is not text is shown by its representation, which may hold anything as well."""
    return value if isinstance(value, bool | int | float | None) else printable(repr(value))


def _indented(text: str) -> str:
    return "\n".join(f"    {printable(line)}" for line in str(text).splitlines())


def _plain_traceback(exc_info: Any) -> str:
    return "".join(traceback.TracebackException(*exc_info, capture_locals=False, compact=True).format())


def _order_keys(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Time, level and event come first, because people sometimes read JSON too."""
    return {"timestamp": event.pop("timestamp"), "level": event.pop("level"), "event": event.pop("event"), **event}


def _configure_libraries(processors: list[Processor], stream: LogStream, level: int) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *processors],
        )
    )
    root: Any = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
