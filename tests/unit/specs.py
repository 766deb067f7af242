"""Specs for tests, with every field that the state machine reads filled in, as acceptance would.

The defaults are plain numbers that are easy to reckon with: a first delay of a second, no jitter, no limits.
"""

from clepsydra.core.action.spec import fill_in
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US, duration, timestamp
from clepsydra.v1.action_pb2 import LogLine, Once, Periodic, Retention, RetryPolicy, Schedule, Spec

# 2026-01-01T12:00:00Z
NOON_US = 1_767_268_800 * SECOND_US


def filled_in(spec: Spec, now_us: int) -> Spec:
    """A copy of the spec with its defaults, as accepted now."""
    filled = Spec()
    filled.CopyFrom(spec)
    fill_in(filled, now_us)
    return filled


def once(start_us: int = NOON_US) -> Schedule:
    return Schedule(start_time=timestamp(start_us), once=Once())


def fixed_rate(interval_us: int, *, start_us: int = NOON_US, end_us: int | None = None, max_runs: int = 0) -> Schedule:
    return _periodic(Periodic.FIXED_RATE, interval_us, start_us, end_us, max_runs)


def drift(interval_us: int, *, start_us: int = NOON_US, end_us: int | None = None, max_runs: int = 0) -> Schedule:
    return _periodic(Periodic.DRIFT, interval_us, start_us, end_us, max_runs)


def _periodic(mode: Periodic.Mode, interval_us: int, start_us: int, end_us: int | None, max_runs: int) -> Schedule:
    periodic = Periodic(interval=duration(interval_us), mode=mode, max_runs=max_runs)
    if end_us is not None:
        periodic.end_time.CopyFrom(timestamp(end_us))
    return Schedule(start_time=timestamp(start_us), periodic=periodic)


def retry_policy(
    *,
    first_delay_us: int = SECOND_US,
    multiplier: float = 2,
    max_delay_us: int = HOUR_US,
    jitter: float = 0,
    max_attempts: int = 0,
    max_elapsed_us: int | None = None,
) -> RetryPolicy:
    policy = RetryPolicy(
        first_delay=duration(first_delay_us),
        multiplier=multiplier,
        max_delay=duration(max_delay_us),
        jitter=jitter,
        max_attempts=max_attempts,
    )
    if max_elapsed_us is not None:
        policy.max_elapsed.CopyFrom(duration(max_elapsed_us))
    return policy


def spec_of(
    schedule: Schedule,
    *,
    retry: RetryPolicy | None = None,
    attempt_timeout_us: int = MINUTE_US,
    start_deadline_us: int | None = None,
    keep_success_us: int = DAY_US,
    keep_failure_us: int = 7 * DAY_US,
    interruption_limit: int = 0,
) -> Spec:
    spec = Spec(
        schedule=schedule,
        retry=retry or retry_policy(),
        attempt_timeout=duration(attempt_timeout_us),
        retention=Retention(after_success=duration(keep_success_us), after_failure=duration(keep_failure_us)),
        interruption_limit=interruption_limit,
        log=LogLine(message="tick"),
    )
    if start_deadline_us is not None:
        spec.start_deadline.CopyFrom(duration(start_deadline_us))
    return spec
