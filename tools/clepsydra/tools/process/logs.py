"""The log of a server on stderr: text for people on a terminal, JSON elsewhere.

Lines that handlers and libraries write through Python's `logging` look the same.
"""

import logging
import sys
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from clepsydra.tools.format.terminal import allows_escapes
from clepsydra.tools.process.log_stream import LogStream
from clepsydra.tools.settings.model import LogSettings

_SHARED: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]

# Without the values of local variables: they contain payloads, headers and passwords of users.
_TRACEBACKS = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


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
        return [structlog.dev.ConsoleRenderer(colors=allows_escapes(stream))]
    return [_TRACEBACKS, _order_keys, structlog.processors.JSONRenderer(ensure_ascii=False)]


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
