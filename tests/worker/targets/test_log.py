"""The target for trying things out; and what happens when the log itself is broken."""

from collections.abc import AsyncIterator
from typing import Any, NoReturn

import pytest
import structlog
from structlog.testing import LogCapture

from clepsydra.v1.action_pb2 import Attempt, Spec
from clepsydra.worker import Registry
from clepsydra.worker.result import SUCCESS
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import an_attempt, handled_by, logged


async def test_a_line_with_the_context(targets: Targets, lines: LogCapture) -> None:
    assert await targets.execute(logged("100% %s grün"), an_attempt()) == SUCCESS
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
    await targets.execute(logged("first\nsecond\x1b[31m"), an_attempt())
    assert lines.entries[0]["event"] == r"first\nsecond\x1b[31m"


@pytest.fixture
async def muted_targets(settings: WorkerSettings, registry: Registry) -> AsyncIterator[Targets]:
    """Targets whose log cannot be written."""

    def disk_full(_logger: Any, _method: str, _event: Any) -> NoReturn:
        raise OSError(28, "No space left on device")

    targets = Targets(
        settings, registry, structlog.wrap_logger(None, [disk_full], structlog.make_filtering_bound_logger(0))
    )
    await targets.start()
    yield targets
    await targets.close()


@pytest.mark.parametrize("spec", [logged("hello"), handled_by("function"), handled_by("coroutine")])
async def test_a_log_that_cannot_be_written_fails_the_attempt_and_nothing_else(
    muted_targets: Targets, registry: Registry, spec: Spec
) -> None:
    @registry.handler("function")
    def function() -> None:
        raise ValueError

    @registry.handler("coroutine")
    async def coroutine() -> None:
        raise ValueError

    # More often than there are threads: none is lost.
    for _ in range(5):
        result = await muted_targets.execute(spec, an_attempt())
        assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
        assert result.error.startswith("the worker failed to execute the action: ")


async def test_targets_that_were_never_started_can_be_closed(settings: WorkerSettings, registry: Registry) -> None:
    await Targets(settings, registry, structlog.get_logger()).close()
