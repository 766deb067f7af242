"""Schedules and retries in the slowest and plainest way: from one occurrence to the next, from one delay to the next.

The product does the same by arithmetic; tests hold it to these walks.
"""

from clepsydra.core.times import END_OF_TIME_US, duration_us, us_of
from clepsydra.v1.action_pb2 import Periodic, RetryPolicy, Schedule


def is_on_a_grid(schedule: Schedule) -> bool:
    return schedule.WhichOneof("recurrence") == "periodic" and schedule.periodic.mode == Periodic.FIXED_RATE


def last_us(schedule: Schedule) -> int:
    """The last moment at which an occurrence may lie."""
    if schedule.HasField("periodic") and schedule.periodic.HasField("end_time"):
        return us_of(schedule.periodic.end_time)
    return END_OF_TIME_US - 1


def walk_to_first(schedule: Schedule, now_us: int) -> int | None:
    at_us = us_of(schedule.start_time)
    while at_us < now_us:
        at_us = at_us + duration_us(schedule.periodic.interval) if is_on_a_grid(schedule) else now_us
    if schedule.HasField("periodic") and at_us > last_us(schedule):
        return None
    return at_us


def walk_to_next(schedule: Schedule, occurrence_us: int, runs: int, now_us: int) -> tuple[int | None, int]:
    """The occurrence after the given one that is still to come, and how many passed before it."""
    if not schedule.HasField("periodic"):
        return None, 0
    if schedule.periodic.max_runs and runs >= schedule.periodic.max_runs:
        return None, 0
    interval_us, end_us = duration_us(schedule.periodic.interval), last_us(schedule)
    at_us, missed = us_of(schedule.start_time), 0
    if is_on_a_grid(schedule):
        while at_us <= occurrence_us:
            at_us += interval_us
        while at_us < now_us and at_us <= end_us:
            at_us += interval_us
            missed += 1
    else:
        at_us = max(at_us, occurrence_us + interval_us, now_us + interval_us)
    return (at_us if at_us <= end_us else None), missed


def walk_to_delay(policy: RetryPolicy, failures: int) -> float:
    """The delay before jitter."""
    delay_us: float = duration_us(policy.first_delay)
    for _ in range(failures - 1):
        delay_us = min(delay_us * policy.multiplier, duration_us(policy.max_delay))
    return min(delay_us, duration_us(policy.max_delay))
