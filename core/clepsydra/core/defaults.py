"""What a spec means where it says nothing.

An action is stored with its defaults filled in, so that it keeps its meaning when defaults change, and so that the
state machine can rely on every field.
"""

from clepsydra.core import limits
from clepsydra.core.moments import duration, duration_us, set_us
from clepsydra.v1.action_pb2 import HttpRequest, Once, Periodic, Retention, RetryPolicy, Schedule, Spec

_RETRY = RetryPolicy(
    first_delay=duration(limits.RETRY_FIRST_DELAY_DEFAULT_US),
    multiplier=limits.RETRY_MULTIPLIER_DEFAULT,
    max_delay=duration(limits.RETRY_MAX_DELAY_DEFAULT_US),
    jitter=limits.RETRY_JITTER_DEFAULT,
    max_attempts=limits.RETRY_MAX_ATTEMPTS_DEFAULT,
)

_RETENTION = Retention(
    after_success=duration(limits.RETENTION_AFTER_SUCCESS_DEFAULT_US),
    after_failure=duration(limits.RETENTION_AFTER_FAILURE_DEFAULT_US),
)


_RUNS_ONCE = Schedule(once=Once())

_DEFAULTS = Spec(
    retry=_RETRY,
    attempt_timeout=duration(limits.ATTEMPT_TIMEOUT_DEFAULT_US),
    retention=_RETENTION,
    interruption_limit=limits.INTERRUPTION_LIMIT_DEFAULT,
)
# Encoded, because protobuf merges bytes at a third of the cost of a message.
ENCODED_DEFAULTS = _DEFAULTS.SerializeToString()
_ENCODED_RUNS_ONCE = _RUNS_ONCE.SerializeToString()


def filled_in(spec: Spec, now_us: int) -> Spec:
    """The spec with every field set that has a default, as accepted now; the one given is left as it is.

    >>> filled_in(Spec(), 5_000_000).schedule.start_time.seconds
    5
    """
    filled = Spec()
    filled.CopyFrom(spec)
    fill_in(filled, now_us)
    return filled


def fill_in(spec: Spec, now_us: int) -> str | None:
    """The same in place, for a spec that nobody else holds. Returns how its start was given: time, delay, or not."""
    given_start = _fill_in_schedule(spec.schedule, now_us)
    is_set = spec.HasField
    if is_set("http"):
        _fill_in_http(spec.http)
    if not (is_set("retry") or is_set("attempt_timeout") or is_set("retention") or is_set("interruption_limit")):
        # Most specs leave all of this open; one merge is a third of the cost of going through them.
        spec.MergeFromString(ENCODED_DEFAULTS)
        return given_start
    _fill_in_retry(spec.retry)
    _fill_in_retention(spec.retention)
    if not is_set("attempt_timeout"):
        spec.attempt_timeout.CopyFrom(_DEFAULTS.attempt_timeout)
    if not is_set("interruption_limit"):
        spec.interruption_limit = limits.INTERRUPTION_LIMIT_DEFAULT
    return given_start


def _fill_in_schedule(schedule: Schedule, now_us: int) -> str | None:
    start: str | None = schedule.WhichOneof("start")
    if start != "start_time":
        delay_us = duration_us(schedule.delay) if start == "delay" else 0
        set_us(schedule.start_time, now_us + delay_us)
    if not schedule.HasField("periodic"):
        schedule.MergeFromString(_ENCODED_RUNS_ONCE)
    elif schedule.periodic.mode == Periodic.MODE_UNSPECIFIED:
        schedule.periodic.mode = Periodic.FIXED_RATE
    return start


def _fill_in_retry(retry: RetryPolicy) -> None:
    if not retry.HasField("first_delay"):
        first_us = limits.RETRY_FIRST_DELAY_DEFAULT_US
        if retry.HasField("max_delay"):
            first_us = min(first_us, duration_us(retry.max_delay))
        retry.first_delay.CopyFrom(duration(first_us))
    if not retry.HasField("max_delay"):
        # A first delay that is longer than the usual maximum was meant as it was said.
        max_us = max(limits.RETRY_MAX_DELAY_DEFAULT_US, duration_us(retry.first_delay))
        retry.max_delay.CopyFrom(duration(max_us))
    if not retry.HasField("multiplier"):
        retry.multiplier = limits.RETRY_MULTIPLIER_DEFAULT
    if not retry.HasField("jitter"):
        retry.jitter = limits.RETRY_JITTER_DEFAULT
    if not retry.HasField("max_attempts"):
        retry.max_attempts = limits.RETRY_MAX_ATTEMPTS_DEFAULT


def _fill_in_retention(retention: Retention) -> None:
    if not retention.HasField("after_success"):
        retention.after_success.CopyFrom(_RETENTION.after_success)
    if not retention.HasField("after_failure"):
        retention.after_failure.CopyFrom(_RETENTION.after_failure)


def _fill_in_http(http: HttpRequest) -> None:
    if not http.method:
        http.method = "POST" if http.body else "GET"
