"""One line for each attempt that ended, with one set of keys, and lines for what was taken over."""

import asyncio
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from clepsydra.core.times import HOUR_US, SECOND_US, duration, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import HttpRequest, Periodic, Retention, RetryPolicy, Schedule
from clepsydra.worker import DoNotRetry
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time

KEYS = {"action", "attempt", "number", "kind", "target", "worker", "outcome", "duration_ms", "lateness_ms", "error"}


class Lines(LogCapture):
    def __init__(self, level: int = 0) -> None:
        super().__init__()
        self.log = structlog.wrap_logger(None, [self], structlog.make_filtering_bound_logger(level))

    def of(self, event: str) -> list[Any]:
        return [line for line in self.entries if line["event"] == event]


def failing_fleet() -> Fleet:
    """Its handlers `fail`, which may be retried, and `refuse`, which may not."""
    fleet = Fleet()

    async def fail(context: Context) -> None:
        raise ValueError("not today")

    async def refuse(context: Context) -> None:
        raise DoNotRetry("no such user")

    fleet.handler("fail", fail)
    fleet.handler("refuse", refuse)
    return fleet


@on_virtual_time
async def test_a_success_is_a_debug_line() -> None:
    fleet, lines = Fleet(), Lines()

    async def slow(context: Context) -> None:
        await asyncio.sleep(0.25)

    fleet.handler("slow", slow)
    action = await fleet.create("a", handler="slow", delay_us=SECOND_US)
    member = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: member.tally.succeeded == 1)
    [line] = lines.of("an attempt succeeded")
    assert line["log_level"] == "debug"
    assert line.keys() >= KEYS
    assert (line["action"], line["number"], line["kind"], line["target"]) == ("a", 1, "handler", "slow")
    assert (line["worker"], line["outcome"], line["error"], line["next"]) == ("worker-0", "success", "", None)
    assert line["attempt"] == f"{action.guid}-{action.scheduled_at_us}-1"
    assert line["duration_ms"] == pytest.approx(250, abs=1)
    assert 0 <= line["lateness_ms"] < 20


@on_virtual_time
async def test_successes_cost_nothing_where_debug_lines_are_not_shown() -> None:
    fleet, lines = Fleet(), Lines(level=20)
    await fleet.create("a")
    member = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: member.tally.succeeded == 1)
    assert lines.of("an attempt succeeded") == []


@on_virtual_time
async def test_a_retry_is_an_info_line_and_a_failure_for_good_a_warning_and_each_is_logged_once() -> None:
    fleet, lines = failing_fleet(), Lines(level=20)
    retry = RetryPolicy(first_delay=duration(SECOND_US), jitter=0, max_attempts=2)
    await fleet.create("a", handler="fail", retry=retry)
    await fleet.create("b", handler="refuse")
    member = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: member.tally.failed == 3)
    first, last = [line for line in lines.of("an attempt failed") if line["action"] == "a"]
    [refused] = [line for line in lines.of("an attempt failed") if line["action"] == "b"]
    assert [line["log_level"] for line in (first, last, refused)] == ["info", "warning", "warning"]
    assert all(line.keys() >= KEYS for line in (first, last, refused))
    assert first["next"].startswith("2027-01-15T08:00:01")
    assert (last["next"], last["number"], last["reason"]) == (None, 2, "the retry policy's attempts are used up")
    assert refused["reason"] == refused["error"] == "no such user"
    assert isinstance(first["exc_info"], ValueError)
    assert "exc_info" not in refused
    assert not [line for line in lines.entries if "handler" in line["event"]]


@on_virtual_time
async def test_a_failure_for_good_has_a_reason_also_where_no_status_keeps_it() -> None:
    """A periodic action goes on to its next occurrence; an action that is not kept is gone."""
    fleet, lines = failing_fleet(), Lines(level=20)
    hourly = Schedule(periodic=Periodic(interval=duration(HOUR_US)))
    retry, gone = RetryPolicy(max_attempts=1), Retention(after_failure=duration(0))
    await fleet.create("a", handler="fail", retry=retry, schedule=hourly)
    await fleet.create("b", handler="refuse", retention=gone)
    member = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: member.tally.failed == 2)
    periodic, refused = sorted(lines.of("an attempt failed"), key=lambda line: str(line["action"]))
    assert (periodic["log_level"], periodic["reason"]) == ("warning", "no attempt is left for this occurrence")
    assert periodic["next"] is not None
    assert (refused["log_level"], refused["reason"]) == ("warning", "no such user")


@on_virtual_time
async def test_an_outcome_that_is_not_accepted_has_the_same_keys_as_a_success() -> None:
    fleet, lines = Fleet(), Lines()

    async def slow(context: Context) -> None:
        await asyncio.sleep(60 if context.action_id == "a" else 0)

    fleet.handler("slow", slow)
    member = fleet.add_worker(log=lines.log)
    for action_id in ("a", "b"):
        await fleet.create(action_id, handler="slow")
    await fleet.until(lambda: len(fleet.started) == 2)
    await fleet.delete("a")
    await fleet.until(lambda: member.tally.superseded == 1)
    [ended] = lines.of("an attempt succeeded")
    [superseded] = [line for line in lines.entries if line.get("outcome") == "superseded"]
    assert superseded.keys() == ended.keys()


@on_virtual_time
async def test_of_a_failed_batch_one_line_has_the_traceback() -> None:
    fleet, lines = Fleet(shards=1), Lines(level=20)

    @fleet.registry.handler("batch", batch=10)
    async def batch(payloads: list[bytes]) -> None:
        raise ValueError

    for n in range(3):
        await fleet.create(f"a{n}", handler="batch", retry=RetryPolicy(max_attempts=1))
    member = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: member.tally.failed == 3)
    assert [("exc_info" in line) for line in lines.of("an attempt failed")] == [True, False, False]


@on_virtual_time
async def test_a_timeout_is_shown_as_the_spec_has_it_and_a_url_as_its_host() -> None:
    fleet, lines = Fleet(), Lines(level=20)

    async def hang(context: Context) -> None:
        await asyncio.sleep(3600)

    fleet.handler("hang", hang)
    await fleet.create("a", handler="hang", attempt_timeout=duration(SECOND_US), retry=RetryPolicy(max_attempts=1))
    await fleet.create("b", handler="", http=HttpRequest(url="ftp://user:pass@example.org/?token=secret"))
    member = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: member.tally.failed == 2)
    timed_out, unsendable = sorted(lines.of("an attempt failed"), key=lambda line: str(line["action"]))
    assert (timed_out["outcome"], timed_out["error"]) == ("timeout", "it did not end within its timeout of 1 s")
    assert (await fleet.status("a")).last_attempt.error == timed_out["error"]
    assert (unsendable["kind"], unsendable["target"]) == ("http", "example.org:0")
    assert "secret" not in str(unsendable)


@on_virtual_time
async def test_what_is_taken_over_is_logged_with_counts_and_shows_the_worker_that_had_it() -> None:
    fleet, lines = Fleet(shards=2), Lines(level=20)

    async def hang(context: Context) -> None:
        if context.attempt_number == 1:
            await asyncio.sleep(3600)

    fleet.handler("hang", hang)
    victim = fleet.add_worker()
    for n in range(6):
        await fleet.create(f"a{n}", handler="hang", attempt_timeout=duration(HOUR_US))
    await fleet.until(lambda: len(fleet.started) == 6)
    # Long enough that leases were extended.
    await asyncio.sleep(20)
    victim.kill()
    heir = fleet.add_worker(log=lines.log)
    await fleet.until(lambda: heir.tally.found_interrupted >= 6, HOUR_US)
    assert {(line["shard"], line["taken_from"]) for line in lines.of("a shard was taken over")} == {
        (0, "worker-0"),
        (1, "worker-0"),
    }
    assert sum(line["attempts"] for line in lines.of("attempts were found interrupted")) == heir.tally.found_interrupted
    await fleet.until(lambda: heir.tally.succeeded == 6, HOUR_US)
    for n in range(6):
        status = await fleet.status(f"a{n}")
        assert status.counters.interrupted_attempts >= 1
        interrupted = [each for each in status.attempts if each.outcome == action_pb2.Attempt.INTERRUPTION]
        assert interrupted[0].worker == "worker-0"
        # Its start, not that of the last extension of its lease.
        assert us_of(interrupted[0].start_time) - us_of(interrupted[0].occurrence_time) < SECOND_US
