"""A host that fails or is silent gets fewer requests at once, and leaves connections for the others."""

import asyncio

import pytest
import structlog
from aiohttp import web
from structlog.testing import LogCapture

from clepsydra.core.action.attempt import Result
from clepsydra.v1.action_pb2 import Attempt
from clepsydra.worker.capacity import Capacity
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets
from clepsydra.worker.targets.hosts import Host, Hosts
from tests.worker.targets.executing import LIMIT_S, an_attempt, execute, executing, http
from tests.worker.targets.serving import Servers

URL = "http://api.example.org/"
SETTINGS = WorkerSettings(http_connections=400, http_connections_per_host=16)


class World:
    def __init__(self, lines: LogCapture) -> None:
        log = structlog.wrap_logger(None, [lines], structlog.make_filtering_bound_logger(0))
        self.tally = Tally()
        self.hosts = Hosts(SETTINGS, Capacity(2000), self.tally, log)

    def fail(self, host: Host, started_in_round: int | None = None, *, has_answered: bool = True) -> None:
        started = host.round if started_in_round is None else started_in_round
        self.hosts.failed(host, started, "no", has_answered=has_answered)


@pytest.fixture
def world(lines: LogCapture) -> World:
    return World(lines)


def test_failures_halve_the_limit_and_answers_raise_it(world: World, lines: LogCapture) -> None:
    host = world.hosts.of(URL)
    assert host.needs.room() == 16
    limits = []
    for _ in range(6):
        world.hosts.succeeded(host)
        world.fail(host)
        limits.append(host.own.limit)
    assert limits == [8, 4, 2, 1, 1, 1]
    assert [line["log_level"] for line in lines.entries] == ["warning"]
    assert lines.entries[0]["host"] == "api.example.org:80"
    for _ in range(20):
        world.hosts.succeeded(host)
    assert host.own.limit == 16
    assert [line["log_level"] for line in lines.entries] == ["warning", "info"]
    assert (world.tally.limited_hosts, world.tally.recovered_hosts) == (1, 1)


def test_requests_that_were_under_way_together_count_once(world: World) -> None:
    host = world.hosts.of(URL)
    world.hosts.succeeded(host)
    started_in_round = host.round
    for _ in range(10):
        world.fail(host, started_in_round)
    assert host.own.limit == 8


def test_a_host_that_answers_none_of_its_requests_is_tried_with_one_at_a_time(world: World) -> None:
    host = world.hosts.of(URL)
    world.fail(host, has_answered=False)
    assert host.own.limit == 1


def test_silent_hosts_leave_half_of_the_connections_however_many_they_are(world: World) -> None:
    good = world.hosts.of("https://good.example.org")
    world.hosts.succeeded(good)
    for n in range(1000):
        silent = world.hosts.of(f"http://silent-{n}.example.org/")
        silent.needs.take(silent.needs.room())
    assert good.needs.room() >= 16
    # One that falls silent joins them.
    good.needs.take(10)
    before = world.hosts.of(URL).needs.room()
    world.fail(good, has_answered=False)
    world.fail(good, has_answered=False)
    assert before == 0
    assert good.needs.room() == 0
    good.needs.give_back(10)
    assert good.own.taken == 0


def test_what_a_host_has_taken_is_given_back_in_full_whatever_became_of_it_meanwhile(world: World) -> None:
    host, other = world.hosts.of(URL), world.hosts.of("http://other.example.org")
    room = other.needs.room()
    for change in (world.hosts.succeeded, lambda it: world.fail(it, has_answered=False), world.hosts.succeeded):
        host.needs.take(1)
        change(host)
    host.needs.give_back(3)
    assert other.needs.room() == room


async def test_answers_errors_and_timeouts_reach_the_host(
    targets: Targets, servers: Servers, lines: LogCapture
) -> None:
    asked = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        asked.set()
        await asyncio.sleep(LIMIT_S)
        return web.Response()

    url = await servers.answering(silent)
    spec = http(url)
    running = an_attempt(spec)
    task = executing(targets, spec, running)
    async with asyncio.timeout(LIMIT_S):
        await asked.wait()
    running.cancelled_with = Result(Attempt.TIMEOUT, "it did not end within its timeout of 1 s")
    task.cancel()
    await asyncio.wait([task])
    assert targets.executors["http"].needs(spec.http).room() == 1
    assert lines.entries[-1]["error"] == "it did not end within its timeout of 1 s"
    refusing = http(await servers.refusing(503))
    await execute(targets, refusing)
    assert targets.executors["http"].needs(refusing.http).room() == 1
    missing = http(await servers.refusing(404))
    await execute(targets, missing)
    assert targets.executors["http"].needs(missing.http).room() > 1
