"""When an action runs next, by arithmetic: no walk from one occurrence to the next."""

from typing import NamedTuple

from clepsydra.core.times import END_OF_TIME_US, duration_us, us_of
from clepsydra.v1.action_pb2 import Periodic, Schedule


class Next(NamedTuple):
    """The next occurrence, and how many were skipped to reach it."""

    at_us: int | None
    missed: int


NO_MORE = Next(None, 0)


def first_occurrence(schedule: Schedule, now_us: int) -> int | None:
    """When an action that is accepted now runs first; None if it ends before that.

    After its start, it runs at once, or at the next point of its grid. Occurrences before it existed are not missed.
    """
    start_us = us_of(schedule.start_time)
    if not schedule.HasField("periodic"):
        return max(start_us, now_us)
    periodic = schedule.periodic
    if _is_fixed_rate(schedule):
        at_us = _grid_point_at_or_after(start_us, duration_us(periodic.interval), now_us)
    else:
        at_us = max(start_us, now_us)
    return at_us if at_us <= _end_us(periodic) else None


def next_occurrence(schedule: Schedule, occurrence_us: int, runs: int, now_us: int) -> Next:
    """The occurrence after one that ended now; `runs` includes it if it was executed."""
    if not schedule.HasField("periodic"):
        return NO_MORE
    periodic = schedule.periodic
    if periodic.max_runs and runs >= periodic.max_runs:
        return NO_MORE
    start_us, interval_us = us_of(schedule.start_time), duration_us(periodic.interval)
    if _is_fixed_rate(schedule):
        return _next_on_grid(periodic, start_us, interval_us, occurrence_us, now_us)
    # A run that a user requested may end before the schedule's start.
    at_us = max(max(now_us, occurrence_us) + interval_us, start_us)
    return Next(at_us, 0) if at_us <= _end_us(periodic) else NO_MORE


def resumed_occurrence(schedule: Schedule, occurrence_us: int, runs: int, now_us: int) -> Next:
    """Where a paused action resumes. An occurrence that passed meanwhile is executed late only if there is no grid."""
    if occurrence_us >= now_us:
        return Next(occurrence_us, 0)
    if not _is_fixed_rate(schedule):
        return Next(first_occurrence(schedule, now_us), 0)
    following = next_occurrence(schedule, occurrence_us, runs, now_us)
    return Next(following.at_us, following.missed + 1)


def retry_gives_way(schedule: Schedule, occurrence_us: int, runs: int, now_us: int, retry_at_us: int) -> bool:
    """Whether a retry would come after the next fixed-rate occurrence, which then takes its place."""
    if not _is_fixed_rate(schedule):
        return False
    following = next_occurrence(schedule, occurrence_us, runs, now_us)
    if following.at_us is None:
        return False
    return retry_at_us >= following.at_us - following.missed * duration_us(schedule.periodic.interval)


def _next_on_grid(periodic: Periodic, start_us: int, interval_us: int, occurrence_us: int, now_us: int) -> Next:
    following_us = _grid_point_at_or_after(start_us, interval_us, occurrence_us + 1)
    at_us = max(following_us, _grid_point_at_or_after(start_us, interval_us, now_us))
    end_us = _end_us(periodic)
    if at_us <= end_us:
        return Next(at_us, (at_us - following_us) // interval_us)
    missed = (end_us - following_us) // interval_us + 1 if following_us <= end_us else 0
    return Next(None, missed)


def _grid_point_at_or_after(start_us: int, interval_us: int, at_or_after_us: int) -> int:
    return start_us + max(0, -((start_us - at_or_after_us) // interval_us)) * interval_us


def _is_fixed_rate(schedule: Schedule) -> bool:
    return schedule.HasField("periodic") and schedule.periodic.mode != Periodic.DRIFT


def _end_us(periodic: Periodic) -> int:
    return us_of(periodic.end_time) if periodic.HasField("end_time") else END_OF_TIME_US - 1
