"""What a server writes to stderr: lines for people on a terminal, JSON elsewhere.

What handlers and libraries write through Python's own `logging` looks the same.
"""

import logging
import sys
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from clepsydra.tools.log_stream import LogStream
from clepsydra.tools.settings import LogSettings

_SHARED: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]

# Without the values of local variables: they are users' payloads, headers and passwords.
_TRACEBACKS = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def configure_logs(settings: LogSettings, stream: TextIO | None = None) -> FilteringBoundLogger:
    """Set up logging for this process, once, and return its logger."""
    surviving = LogStream(stream or sys.stderr)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    rendered = [surviving.tell_losses, *_rendered(settings, surviving.isatty())]
    structlog.configure(
        processors=[*_SHARED, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", surviving)),
        cache_logger_on_first_use=True,
    )
    _configure_libraries(rendered, surviving, level)
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def _rendered(settings: LogSettings, on_terminal: bool) -> list[Processor]:
    if settings.format == "text" or (settings.format == "auto" and on_terminal):
        return [structlog.dev.ConsoleRenderer(colors=on_terminal)]
    return [_TRACEBACKS, _in_order, structlog.processors.JSONRenderer(ensure_ascii=False)]


def _in_order(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """When, how grave and what first: a person may have to read JSON too."""
    return {"timestamp": event.pop("timestamp"), "level": event.pop("level"), "event": event.pop("event"), **event}


def _configure_libraries(rendered: list[Processor], stream: LogStream, level: int) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    root: Any = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
