"""The target for trying things out: a line in the worker's log."""

from structlog.typing import FilteringBoundLogger

from clepsydra.v1.action_pb2 import LogLine
from clepsydra.worker.context import Context
from clepsydra.worker.result import SUCCESS, Result


def write_line(log: FilteringBoundLogger, line: LogLine, context: Context) -> Result:
    log.info(
        _in_one_line(line.message),
        action_id=context.action_id,
        attempt_id=context.attempt_id,
        attempt_number=context.attempt_number,
        scheduled_time=context.scheduled_time.isoformat(),
    )
    return SUCCESS


def _in_one_line(message: str) -> str:
    """Control characters are shown, not obeyed: a message must not look like two lines of the log.

    >>> _in_one_line("water" + chr(10) + "clock")
    'water\\\\nclock'
    """
    return message if message.isprintable() else repr(message)[1:-1]
