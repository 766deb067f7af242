"""Whole lives, played at random from a seed: what must hold not within one step but from the first to the last."""

import random

import pytest

from clepsydra.core.action.attempt import attempt_id
from clepsydra.core.action.events import Decision
from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Schedule, Spec
from tests.unit.lives import Life
from tests.unit.specs import NOON_US, drift, fixed_rate, once, retry_policy, spec_of
from tests.unit.walks import last_us

STEPS = 80


class Record:
    """What one guid has seen: nothing of it may come twice, or go back."""

    def __init__(self, life: Life) -> None:
        self.planned_us = [life.planned_us]
        self.occurrences_us = [life.occurrence_us]
        self.attempt_ids: set[str] = set()
        self.keys: dict[str, int] = {}

    def begins(self, life: Life) -> None:
        attempt = attempt_id("guid", life.occurrence_us, attempt_number(life.status))
        assert attempt not in self.attempt_ids
        self.attempt_ids.add(attempt)
        key = life.key
        assert self.keys.setdefault(key, life.occurrence_us) == life.occurrence_us

    def goes_on(self, life: Life) -> None:
        if life.row_at_us is None:
            return
        assert life.planned_us > self.planned_us[-1]
        self.planned_us.append(life.planned_us)
        if life.occurrence_us != self.occurrences_us[-1]:
            assert life.occurrence_us > self.occurrences_us[-1]
            self.occurrences_us.append(life.occurrence_us)


class Play:
    """A worker and a user who do to an action what they like, as far as the action's decision allows."""

    def __init__(self, spec: Spec, chance: random.Random) -> None:
        self.chance = chance
        self.now_us = NOON_US - chance.choice((-HOUR_US, 0, 1, HOUR_US))
        self.life = Life(spec, accepted_us=self.now_us)
        self.record = Record(self.life)
        self.runs_wanted_by_users = 0

    def plays_on(self) -> bool:
        if self.life.row_at_us is None:
            return False
        if self.chance.random() < 0.1:
            self.user_acts()
        elif self.life.state != "PAUSED":
            self.worker_acts()
        return self.life.row_at_us is not None

    def worker_acts(self) -> None:
        late_us = self.chance.choice((0, 0, 1, SECOND_US, HOUR_US))
        self.now_us = max(self.now_us, self.life.row_at_us or 0) + late_us
        decision = self.life.decision(self.now_us)
        if decision is Decision.BEGIN:
            self.attempt()
            return
        events = {
            Decision.EXPIRE: self.life.expire,
            Decision.INTERRUPT: self.life.interrupt,
            Decision.PURGE: self.life.purge,
        }
        events[decision](self.now_us)
        self.record.goes_on(self.life)

    def attempt(self) -> None:
        assert self.now_us >= self.life.planned_us >= self.life.occurrence_us
        self.record.begins(self.life)
        self.life.begin(self.now_us)
        # Some end within the moment, some outlast a lease that was extended, and of some nothing is heard again.
        took_us = self.chance.choice((0, SECOND_US, 5 * MINUTE_US))
        what = self.chance.choice(("succeed", "fail", "fail for good", "wish", "die"))
        if what == "die":
            return
        self.now_us += took_us
        if what == "succeed":
            self.life.succeed(self.now_us)
        else:
            wish_us = self.chance.choice((0, MINUTE_US)) if what == "wish" else None
            self.life.fail(self.now_us, retryable=what != "fail for good", retry_after_us=wish_us)
        self.record.goes_on(self.life)

    def user_acts(self) -> None:
        self.now_us += self.chance.choice((0, 1, SECOND_US, HOUR_US))
        if self.life.state == "PAUSED":
            self.life.resume(self.now_us)
        elif self.life.state in ("SUCCEEDED", "FAILED", "EXPIRED") or self.chance.random() < 0.5:
            self.life.run_now(self.now_us)
            self.runs_wanted_by_users += 1
        else:
            self.life.pause(self.now_us)
        # Every change by a user is a new guid.
        self.record = Record(self.life)


def _any_spec(chance: random.Random) -> Spec:
    return spec_of(
        _any_schedule(chance),
        retry=retry_policy(
            first_delay_us=chance.choice((0, SECOND_US)),
            max_attempts=chance.choice((0, 1, 3)),
            max_elapsed_us=chance.choice((None, MINUTE_US)),
        ),
        start_deadline_us=chance.choice((None, SECOND_US, HOUR_US)),
        keep_success_us=chance.choice((0, DAY_US)),
        keep_failure_us=chance.choice((0, 1, DAY_US)),
        interruption_limit=chance.choice((0, 1, 2)),
    )


def _any_schedule(chance: random.Random) -> Schedule:
    if chance.random() < 0.2:
        return once()
    periodic = chance.choice((fixed_rate, drift))
    return periodic(
        chance.choice((10_000, SECOND_US, HOUR_US)),
        end_us=chance.choice((None, NOON_US + MINUTE_US, NOON_US + 10 * HOUR_US)),
        max_runs=chance.choice((0, 1, 5)),
    )


@pytest.mark.parametrize("seed", range(200))
def test_a_life_from_its_first_step_to_its_last(seed: int) -> None:
    chance = random.Random(seed)
    play = Play(_any_spec(chance), chance)
    for _ in range(STEPS):
        if not play.plays_on():
            break
        counters, schedule = play.life.counters, play.life.spec.schedule
        occurrence = play.life.status.occurrence
        assert play.life.state != "SCHEDULED" or not (occurrence.failed_attempts or occurrence.interrupted_attempts)
        if schedule.HasField("periodic"):
            if schedule.periodic.max_runs:
                assert counters.runs <= schedule.periodic.max_runs + play.runs_wanted_by_users
            if play.life.state == "SCHEDULED" and not play.runs_wanted_by_users:
                assert play.life.occurrence_us <= last_us(schedule)
        attempts = counters.succeeded_attempts + counters.failed_attempts + counters.interrupted_attempts
        assert attempts >= counters.runs


@pytest.mark.parametrize("seed", range(50))
def test_every_life_with_an_end_reaches_it_and_is_purged(seed: int) -> None:
    chance = random.Random(seed)
    spec = _any_spec(chance)
    if spec.schedule.HasField("periodic"):
        spec.schedule.periodic.max_runs = 5
    play = Play(spec, chance)
    for _ in range(STEPS):
        if play.life.row_at_us is None:
            break
        if play.life.state == "PAUSED":
            play.user_acts()
        play.worker_acts()
    else:
        # The faults are over: from here on every attempt succeeds, and a few steps must do.
        for _ in range(20):
            _succeed_once(play)
    assert play.life.row_at_us is None
    assert play.life.status.state in (action_pb2.SUCCEEDED, action_pb2.FAILED, action_pb2.EXPIRED)


def _succeed_once(play: Play) -> None:
    life = play.life
    if life.row_at_us is None:
        return
    play.now_us = max(play.now_us, life.row_at_us)
    if life.decision(play.now_us) is Decision.BEGIN:
        life.begin(play.now_us)
        life.succeed(play.now_us)
    else:
        play.worker_acts()
