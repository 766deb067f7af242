"""The target for trying things out."""

import structlog
from structlog.testing import LogCapture

from clepsydra.core.action.attempt import SUCCESS
from clepsydra.worker import Registry
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import execute, logged


async def test_a_line_with_the_context(targets: Targets, lines: LogCapture) -> None:
    assert await execute(targets, logged("100% %s grün")) == SUCCESS
    assert lines.entries == [
        {
            "event": "100% %s grün",
            "log_level": "info",
            "action_id": "water-the-plants",
            "attempt_id": "guid-1700000000000000-2",
            "attempt_number": 2,
            "scheduled_time": "2023-11-14T22:13:21.500000+00:00",
        }
    ]


async def test_one_message_stays_one_line(targets: Targets, lines: LogCapture) -> None:
    await execute(targets, logged("first\nsecond\x1b[31m"))
    assert lines.entries[0]["event"] == r"first\nsecond\x1b[31m"


async def test_targets_that_were_never_started_can_be_closed(settings: WorkerSettings, registry: Registry) -> None:
    await Targets(settings, registry, structlog.get_logger()).close()
