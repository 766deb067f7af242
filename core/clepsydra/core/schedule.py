"""When an action runs next: arithmetic on a schedule, without walking from one occurrence to the next."""

from typing import NamedTuple

from clepsydra.core.moments import END_OF_TIME_US, duration_us, us_of
from clepsydra.v1.action_pb2 import Periodic, Schedule


class Next(NamedTuple):
    """The next occurrence, and how many were passed over to reach it."""

    at_us: int | None
    missed: int


NO_MORE = Next(None, 0)


def first_occurrence(schedule: Schedule, now_us: int) -> int:
    """An action accepted after its start runs at once, or on the next point of its grid.

    Occurrences before the action existed are not missed: nobody was asked to carry them out.
    """
    start_us = us_of(schedule.start_time)
    if start_us >= now_us:
        return start_us
    if _is_fixed_rate(schedule):
        return _grid_point_at_or_after(start_us, duration_us(schedule.periodic.interval), now_us)
    return now_us


def next_occurrence(schedule: Schedule, occurrence_us: int, runs: int, now_us: int) -> Next:
    """What comes after an occurrence that ended now; `runs` counts it if it was carried out."""
    if not schedule.HasField("periodic"):
        return NO_MORE
    periodic = schedule.periodic
    if periodic.max_runs and runs >= periodic.max_runs:
        return NO_MORE
    interval_us = duration_us(periodic.interval)
    if _is_fixed_rate(schedule):
        return _next_on_grid(periodic, us_of(schedule.start_time), interval_us, occurrence_us, now_us)
    at_us = max(now_us, occurrence_us) + interval_us
    return Next(at_us, 0) if at_us <= _end_us(periodic) else NO_MORE


def next_fixed_rate_occurrence(schedule: Schedule, occurrence_us: int, runs: int) -> int | None:
    """The occurrence to which a late retry gives way; None if there is none, or no grid."""
    if not _is_fixed_rate(schedule):
        return None
    return next_occurrence(schedule, occurrence_us, runs, occurrence_us).at_us


def _next_on_grid(periodic: Periodic, start_us: int, interval_us: int, occurrence_us: int, now_us: int) -> Next:
    following_us = _grid_point_at_or_after(start_us, interval_us, occurrence_us + 1)
    at_us = max(following_us, _grid_point_at_or_after(start_us, interval_us, now_us))
    end_us = _end_us(periodic)
    if at_us <= end_us:
        return Next(at_us, (at_us - following_us) // interval_us)
    missed = (end_us - following_us) // interval_us + 1 if following_us <= end_us else 0
    return Next(None, missed)


def _grid_point_at_or_after(start_us: int, interval_us: int, moment_us: int) -> int:
    return start_us + max(0, -((start_us - moment_us) // interval_us)) * interval_us


def _is_fixed_rate(schedule: Schedule) -> bool:
    return schedule.HasField("periodic") and schedule.periodic.mode != Periodic.DRIFT


def _end_us(periodic: Periodic) -> int:
    return us_of(periodic.end_time) if periodic.HasField("end_time") else END_OF_TIME_US - 1
