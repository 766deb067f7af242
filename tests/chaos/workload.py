"""What a client asks for, chosen by seed: once and periodic actions, quick and slow, some that fail at first.

Every limit that could end an action before its work is done is off, so whatever is acknowledged must succeed.
"""

import random
from typing import NamedTuple

from clepsydra.core.times import MILLISECOND_US, SECOND_US, duration, timestamp
from clepsydra.v1.action_pb2 import Periodic, PythonHandler, RetryPolicy, Schedule, ScheduledAction, Spec
from tests.chaos.handlers import Work

# Longer than a lease, so that slow work has its lease extended.
ATTEMPT_TIMEOUT_US = 15 * SECOND_US

_RETRY = RetryPolicy(
    first_delay=duration(200 * MILLISECOND_US), multiplier=1.5, max_delay=duration(2 * SECOND_US), max_attempts=0
)


class Intention(NamedTuple):
    """An action, and what its client will do to it later."""

    action: ScheduledAction
    due_us: int
    runs: int
    # After so long; None: never.
    update_after_s: float | None
    delete_after_s: float | None
    replay_after_s: float | None


class Workload:
    def __init__(self, chance: random.Random, prefix: str) -> None:
        self._chance = chance
        self._prefix = prefix
        self._made = 0

    def intend(self, now_us: int) -> Intention:
        """A new action."""
        chance = self._chance
        self._made += 1
        spec, due_us, runs = self.spec(now_us)
        action = ScheduledAction(meta={"id": f"{self._prefix}-{self._made}"}, spec=spec)
        draw = chance.random()
        return Intention(
            action,
            due_us,
            runs,
            update_after_s=chance.uniform(0, 4) if draw < 0.12 else None,
            delete_after_s=chance.uniform(0, 5) if 0.08 < draw < 0.2 else None,
            replay_after_s=chance.uniform(0, 4) if chance.random() < 0.03 else None,
        )

    def spec(self, now_us: int) -> tuple[Spec, int, int]:
        """What to do and when, with the time and the number of runs that this asks for."""
        chance = self._chance
        delay_us = int(chance.choice((0, 0.5, 2, 5)) * chance.random() * SECOND_US)
        due_us = now_us + delay_us
        # A delay counts from the call, which is made later than now.
        has_delay = chance.random() < 0.3
        schedule = Schedule(delay=duration(delay_us)) if has_delay else Schedule(start_time=timestamp(due_us))
        runs = 1
        if chance.random() < 0.08:
            runs = chance.randint(2, 5)
            mode = chance.choice((Periodic.FIXED_RATE, Periodic.DRIFT))
            interval_us = chance.randint(200, 1_000) * MILLISECOND_US
            schedule.periodic.CopyFrom(Periodic(interval=duration(interval_us), mode=mode, max_runs=runs))
        spec = Spec(
            schedule=schedule,
            retry=_RETRY,
            attempt_timeout=duration(ATTEMPT_TIMEOUT_US),
            interruption_limit=0,
            handler=self._handler(is_once=runs == 1),
        )
        return spec, due_us, runs

    def _handler(self, *, is_once: bool) -> PythonHandler:
        chance = self._chance
        work = Work(timeout_us=ATTEMPT_TIMEOUT_US)
        kind = chance.random()
        if kind < 0.1:
            work.failures = chance.randint(1, 3)
        elif kind < 0.13 and is_once:
            # These outlast their lease.
            work.takes_ms = chance.randint(2_000, 6_000)
        elif kind < 0.25:
            work.takes_ms = chance.randint(10, 500)
        return work_for("linger" if work.takes_ms else "record", work)


def work_for(handler: str, work: Work) -> PythonHandler:
    return PythonHandler(name=handler, payload=work.model_dump_json().encode(), content_type="application/json")
