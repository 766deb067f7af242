"""Suspects: an action that kills its workers is found by elimination, and parked; an innocent one never is."""

import pytest

from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.action.spec import INTERRUPTION_LIMIT_DEFAULT
from clepsydra.core.times import END_OF_TIME_US, HOUR_US, MINUTE_US, SECOND_US
from clepsydra.v1 import action_pb2
from tests.unit.lives import Life
from tests.unit.specs import NOON_US, drift, fixed_rate, once, spec_of


def die(life: Life, times: int) -> None:
    """The worker dies this many times while it runs the action, and others notice that when the lease is over."""
    for _ in range(times):
        life.begin(life.planned_us)
        life.interrupt((life.row_at_us or 0) + SECOND_US)


@pytest.mark.parametrize("schedule", [once(), fixed_rate(HOUR_US), drift(HOUR_US)])
def test_an_action_that_kills_its_workers_is_parked_after_three_deaths(schedule: action_pb2.Schedule) -> None:
    life = Life(spec_of(schedule, interruption_limit=INTERRUPTION_LIMIT_DEFAULT), accepted_us=NOON_US)
    die(life, 2)
    assert life.state == "RETRYING"
    die(life, 1)
    assert life.state == "PAUSED"
    assert life.row_at_us == life.planned_us == END_OF_TIME_US
    assert life.status.reason.startswith("parked: the worker died 3 times in a row while it ran its log target, ")
    assert life.counters.runs == 0


def test_the_first_interruption_is_taken_up_at_once_and_the_next_ones_with_growing_delays() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    delays = []
    for _ in range(9):
        life.begin(life.planned_us)
        now_us = (life.row_at_us or 0) + HOUR_US
        life.interrupt(now_us)
        delays.append((life.planned_us - now_us) // SECOND_US)
    assert delays == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_suspects_begin_is_written_in_its_status_before_it_runs() -> None:
    life = Life(spec_of(once(), interruption_limit=3), accepted_us=NOON_US)
    die(life, 1)
    before_us = life.planned_us
    life.begin(before_us)
    assert (life.status.occurrence.lone_attempt, life.planned_us) == (0, before_us)
    life.interrupt(NOON_US + HOUR_US)
    before_us = life.planned_us
    life.begin(before_us)
    assert life.status.occurrence.lone_attempt == attempt_number(life.status) == 3
    assert life.planned_us == before_us + 1


@pytest.mark.parametrize(("limit", "deaths"), [(1, 2), (2, 2), (3, 3), (7, 7)])
def test_a_limit_is_reached_by_an_interruption_of_the_only_suspect(limit: int, deaths: int) -> None:
    life = Life(spec_of(once(), interruption_limit=limit), accepted_us=NOON_US)
    die(life, deaths - 1)
    assert life.state == "RETRYING"
    die(life, 1)
    assert life.state == "PAUSED"


def test_without_a_limit_nothing_is_parked() -> None:
    life = Life(spec_of(once(), interruption_limit=0), accepted_us=NOON_US)
    die(life, 50)
    assert life.state == "RETRYING"


def test_a_worker_that_writes_an_interruption_itself_casts_no_suspicion() -> None:
    life = Life(spec_of(once(), interruption_limit=1), accepted_us=NOON_US)
    for _ in range(5):
        now_us = life.planned_us
        life.begin(now_us)
        life.stop(now_us + MINUTE_US)
        assert life.planned_us == now_us + MINUTE_US
    assert (life.counters.interrupted_attempts, life.counters.consecutive_interrupted_attempts) == (5, 0)


def test_an_outcome_that_is_written_clears_a_suspect() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US), interruption_limit=3), accepted_us=NOON_US)
    die(life, 2)
    life.begin(life.planned_us)
    life.succeed(life.planned_us + SECOND_US)
    die(life, 2)
    assert life.state == "RETRYING"
    life.begin(life.planned_us)
    life.fail(life.planned_us + SECOND_US)
    assert life.counters.consecutive_interrupted_attempts == 0
    life.begin(life.planned_us)
    assert life.status.occurrence.lone_attempt < attempt_number(life.status)


@pytest.mark.parametrize("schedule", [once(), fixed_rate(HOUR_US)])
def test_a_user_who_resumes_a_parked_action_starts_over(schedule: action_pb2.Schedule) -> None:
    life = Life(spec_of(schedule, interruption_limit=3), accepted_us=NOON_US)
    die(life, 3)
    life.resume(NOON_US + 10 * HOUR_US)
    assert life.state in ("SCHEDULED", "RETRYING")
    assert life.status.reason == ""
    die(life, 2)
    assert life.state == "RETRYING"
    die(life, 1)
    assert life.state == "PAUSED"
