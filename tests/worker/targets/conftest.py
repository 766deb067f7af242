"""Targets with a registry of their own, a log that can be read, and servers to call."""

from collections.abc import AsyncIterator

import pytest
import structlog
from structlog.testing import LogCapture

from clepsydra.worker import Registry
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from tests.worker.targets.serving import Servers


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def lines() -> LogCapture:
    """What was logged."""
    return LogCapture()


@pytest.fixture
def settings() -> WorkerSettings:
    return WorkerSettings(handler_threads=2, http_response_bytes=1000)


@pytest.fixture
async def targets(settings: WorkerSettings, registry: Registry, lines: LogCapture) -> AsyncIterator[Targets]:
    log = structlog.wrap_logger(None, [lines], structlog.make_filtering_bound_logger(0))
    targets = Targets(settings, registry, log)
    await targets.start()
    yield targets
    await targets.close()


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    servers = Servers()
    yield servers
    await servers.close()
