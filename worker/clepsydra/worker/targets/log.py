"""Writes a line to the worker's log: for trying things out."""

from collections.abc import Sequence

from clepsydra.core.action.attempt import SUCCESS, Result
from clepsydra.v1.action_pb2 import LogLine
from clepsydra.worker.capacity import NOTHING, Needs
from clepsydra.worker.running import Group
from clepsydra.worker.targets import Resources


class Executor:
    is_eager = True

    def __init__(self, resources: Resources) -> None:
        self._log = resources.log

    def needs(self, _line: LogLine) -> Needs:
        return NOTHING

    async def close(self) -> None:
        """Nothing was opened."""

    async def execute(self, group: Group) -> Sequence[Result]:
        [running] = group
        context = running.context
        self._log.info(
            _in_one_line(running.attempt.target.message),
            action_id=context.action_id,
            attempt_id=context.attempt_id,
            attempt_number=context.attempt_number,
            scheduled_time=context.scheduled_time.isoformat(),
        )
        return (SUCCESS,)


def _in_one_line(message: str) -> str:
    """Control characters are escaped: a message must not look like two lines of the log.

    >>> _in_one_line("water" + chr(10) + "clock")
    'water\\\\nclock'
    """
    return message if message.isprintable() else repr(message)[1:-1]
