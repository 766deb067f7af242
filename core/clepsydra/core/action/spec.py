"""What a spec may say, and what it means where it says nothing: the limit, the rule and the default of each field.

An action is stored with its defaults filled in. So it keeps its meaning when defaults change, and the state machine can
rely on every field. What a target may say is in `clepsydra.core.targets`.
"""

from clepsydra.core.action.schedule import first_occurrence
from clepsydra.core.targets import KINDS
from clepsydra.core.times import (
    DAY_US,
    END_OF_TIME_US,
    HOUR_US,
    MILLISECOND_US,
    MINUTE_US,
    SECOND_US,
    YEAR_US,
    duration,
    duration_us,
    set_us,
)
from clepsydra.core.validation.rules import (
    VALID,
    Violations,
    choice,
    duration_between,
    message,
    number,
    time_in_range,
    under,
    violation,
)
from clepsydra.v1.action_pb2 import Once, Periodic, Retention, RetryPolicy, Schedule, Spec

DELAY_MAX_US = 70 * YEAR_US
INTERVAL_MIN_US = 10 * MILLISECOND_US
INTERVAL_MAX_US = 10 * YEAR_US
RUNS_MAX = 2**63 - 1

RETRY_DELAY_MAX_US = 30 * DAY_US
RETRY_FIRST_DELAY_DEFAULT_US = SECOND_US
RETRY_MULTIPLIER_MIN = 1.0
RETRY_MULTIPLIER_MAX = 100.0
RETRY_MULTIPLIER_DEFAULT = 2.0
RETRY_MAX_DELAY_DEFAULT_US = HOUR_US
RETRY_JITTER_DEFAULT = 0.1
RETRY_ATTEMPTS_MAX = 1_000_000
RETRY_MAX_ATTEMPTS_DEFAULT = 20
RETRY_ELAPSED_MAX_US = YEAR_US

ATTEMPT_TIMEOUT_MIN_US = MILLISECOND_US
ATTEMPT_TIMEOUT_MAX_US = 7 * DAY_US
ATTEMPT_TIMEOUT_DEFAULT_US = MINUTE_US
START_DEADLINE_MIN_US = MILLISECOND_US
START_DEADLINE_MAX_US = YEAR_US
RETENTION_MAX_US = YEAR_US
RETENTION_AFTER_SUCCESS_DEFAULT_US = DAY_US
RETENTION_AFTER_FAILURE_DEFAULT_US = 7 * DAY_US
INTERRUPTIONS_MAX = 1_000_000
INTERRUPTION_LIMIT_DEFAULT = 3
REMEMBERED_ATTEMPTS_MAX = 50
# Not filled in when an action is accepted: an attempt that succeeds at once has nothing before it to remember.
REMEMBERED_ATTEMPTS_DEFAULT = 10

DELAY = duration_between(0, DELAY_MAX_US)

_PERIODIC = message(
    Periodic,
    {
        "interval": duration_between(INTERVAL_MIN_US, INTERVAL_MAX_US),
        "mode": choice(dict(Periodic.Mode.items())),
        "end_time": time_in_range,
        "max_runs": number(0, RUNS_MAX),
    },
    required=["interval"],
)

_SCHEDULE = message(
    Schedule,
    {"start_time": time_in_range, "delay": DELAY, "once": message(Once, {}), "periodic": _PERIODIC},
)

_SHORTER_THAN_FIRST = violation("must not be shorter than first_delay", "max_delay")


_RETRY_FIELDS = message(
    RetryPolicy,
    {
        "first_delay": duration_between(0, RETRY_DELAY_MAX_US),
        "multiplier": number(RETRY_MULTIPLIER_MIN, RETRY_MULTIPLIER_MAX),
        "max_delay": duration_between(0, RETRY_DELAY_MAX_US),
        "jitter": number(0, 1),
        "max_attempts": number(0, RETRY_ATTEMPTS_MAX),
        "max_elapsed": duration_between(0, RETRY_ELAPSED_MAX_US),
    },
)


def _retry(retry: RetryPolicy) -> Violations:
    """Each field by itself, and whether the two delays, if they are valid, fit together."""
    found = _RETRY_FIELDS(retry)
    if retry.HasField("max_delay") and not any(path in ("first_delay", "max_delay") for path, _ in found):
        found += VALID if duration_us(retry.max_delay) >= duration_us(retry.first_delay) else _SHORTER_THAN_FIRST
    return found


_RETENTION = message(
    Retention,
    {
        "after_success": duration_between(0, RETENTION_MAX_US),
        "after_failure": duration_between(0, RETENTION_MAX_US),
    },
)

RULE = message(
    Spec,
    {
        "schedule": _SCHEDULE,
        "retry": _retry,
        "attempt_timeout": duration_between(ATTEMPT_TIMEOUT_MIN_US, ATTEMPT_TIMEOUT_MAX_US),
        "start_deadline": duration_between(START_DEADLINE_MIN_US, START_DEADLINE_MAX_US),
        "retention": _RETENTION,
        "interruption_limit": number(0, INTERRUPTIONS_MAX),
        "remembered_attempts": number(1, REMEMBERED_ATTEMPTS_MAX),
        **{name: kind.RULE for name, kind in KINDS.items()},
    },
    required=["target"],
)

# Every field outside the schedule and the target that has a default.
DEFAULTS = Spec(
    retry=RetryPolicy(
        first_delay=duration(RETRY_FIRST_DELAY_DEFAULT_US),
        multiplier=RETRY_MULTIPLIER_DEFAULT,
        max_delay=duration(RETRY_MAX_DELAY_DEFAULT_US),
        jitter=RETRY_JITTER_DEFAULT,
        max_attempts=RETRY_MAX_ATTEMPTS_DEFAULT,
    ),
    attempt_timeout=duration(ATTEMPT_TIMEOUT_DEFAULT_US),
    retention=Retention(
        after_success=duration(RETENTION_AFTER_SUCCESS_DEFAULT_US),
        after_failure=duration(RETENTION_AFTER_FAILURE_DEFAULT_US),
    ),
    interruption_limit=INTERRUPTION_LIMIT_DEFAULT,
)


def fill_in(spec: Spec, now_us: int) -> str | None:
    """Set every field that has a default, as accepted now. Returns how the start was given: start_time, delay or None.

    >>> spec = Spec()
    >>> fill_in(spec, 5_000_000), spec.schedule.start_time.seconds
    (None, 5)
    """
    schedule = spec.schedule
    given_start: str | None = schedule.WhichOneof("start")
    if given_start != "start_time":
        delay_us = duration_us(schedule.delay) if given_start == "delay" else 0
        set_us(schedule.start_time, now_us + delay_us)
    fill_in_recurrence(schedule)
    kind = spec.WhichOneof("target")
    if kind is not None:
        KINDS[kind].fill_in(getattr(spec, kind))
    _fill_in_retry_delays(spec.retry)
    _fill_in_missing(spec, DEFAULTS)
    return given_start


def fill_in_recurrence(schedule: Schedule) -> None:
    if not schedule.HasField("periodic"):
        schedule.once.SetInParent()
    elif schedule.periodic.mode == Periodic.MODE_UNSPECIFIED:
        schedule.periodic.mode = Periodic.FIXED_RATE


def _fill_in_retry_delays(retry: RetryPolicy) -> None:
    """Where only one of the two delays is given, the default of the other gives way to it."""
    if retry.HasField("first_delay") and not retry.HasField("max_delay"):
        retry.max_delay.CopyFrom(duration(max(RETRY_MAX_DELAY_DEFAULT_US, duration_us(retry.first_delay))))
    elif retry.HasField("max_delay") and not retry.HasField("first_delay"):
        retry.first_delay.CopyFrom(duration(min(RETRY_FIRST_DELAY_DEFAULT_US, duration_us(retry.max_delay))))


def _fill_in_missing(given: Spec | RetryPolicy | Retention, defaults: Spec | RetryPolicy | Retention) -> None:
    """Set what is not set, one level into the messages of our own."""
    for field, default in defaults.ListFields():
        name = field.name
        if given.HasField(name):
            if isinstance(default, RetryPolicy | Retention):
                _fill_in_missing(getattr(given, name), default)
        elif field.message_type is None:
            setattr(given, name, default)
        else:
            getattr(given, name).CopyFrom(default)


_BEYOND_TIME = "would bring the first occurrence to 2100-01-01T00:00:00Z or later"
_NO_OCCURRENCE = violation("must not lie before the first occurrence: none would be left", "periodic.end_time")


def timing_violations(schedule: Schedule, given_start: str | None, now_us: int) -> Violations:
    """What is wrong, at this time, with a schedule that was filled in; `given_start` is what `fill_in` returned."""
    first_us = first_occurrence(schedule, now_us)
    if first_us is not None and first_us < END_OF_TIME_US:
        return VALID
    if schedule.periodic.HasField("end_time"):
        return under("action.spec.schedule", _NO_OCCURRENCE)
    return under("action.spec.schedule", violation(_BEYOND_TIME, given_start or "periodic.interval"))
