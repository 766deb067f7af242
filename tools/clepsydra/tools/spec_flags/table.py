"""The table of flags for the fields of an action. A row is all that `add`, `update` and `get` need to know of a field.

`add` writes the fields whose flags are given. `update` writes them too, and names their paths in the update mask. `get`
shows each field that is set and is not the default. The rows of a target kind are in `clepsydra.tools.targets`.
"""

from clepsydra.core.action.spec import REMEMBERED_ATTEMPTS_DEFAULT, REMEMBERED_ATTEMPTS_MAX
from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.fields.types import DECIMAL, DURATION, LABELS, LIMIT, TIME, constant
from clepsydra.tools.targets import TARGET_FLAGS
from clepsydra.v1.action_pb2 import Periodic

_SCHEDULE_FLAGS = (
    SpecFlag(
        "--in", "spec.schedule.delay", DURATION, "Start after this time. Without --in and --at: now.", one_of="start"
    ),
    SpecFlag(
        "--at",
        "spec.schedule.start_time",
        TIME,
        "Start at this time, such as 2027-01-01T07:30:00Z.",
        one_of="start",
        label="start",
    ),
    SpecFlag("--every", "spec.schedule.periodic.interval", DURATION, "Repeat at this interval.", has_own_line=False),
    SpecFlag(
        "--drift",
        "spec.schedule.periodic.mode",
        constant(Periodic.DRIFT),
        "Count the interval from the end of the last run.",
        needs="--every",
        has_own_line=False,
    ),
    SpecFlag(
        "--until",
        "spec.schedule.periodic.end_time",
        TIME,
        "Plan no run after this time.",
        needs="--every",
        has_own_line=False,
    ),
    SpecFlag(
        "--max-runs",
        "spec.schedule.periodic.max_runs",
        LIMIT,
        "End after this many runs; 0: no limit.",
        needs="--every",
        has_own_line=False,
    ),
)

_POLICY_FLAGS = (
    SpecFlag("--timeout", "spec.attempt_timeout", DURATION, "The time limit of one attempt."),
    SpecFlag("--start-deadline", "spec.start_deadline", DURATION, "Skip a run that cannot start within this time."),
    SpecFlag(
        "--max-attempts", "spec.retry.max_attempts", LIMIT, "Attempts per run; 0: no limit.", label="attempts per run"
    ),
    SpecFlag("--retry-delay", "spec.retry.first_delay", DURATION, "The delay before the first retry."),
    SpecFlag(
        "--retry-multiplier", "spec.retry.multiplier", DECIMAL, "The factor by which the delay grows with each retry."
    ),
    SpecFlag("--retry-max-delay", "spec.retry.max_delay", DURATION, "The longest delay before a retry."),
    SpecFlag("--retry-jitter", "spec.retry.jitter", DECIMAL, "The random share of a delay, from 0 to 1."),
    SpecFlag(
        "--retry-max-elapsed",
        "spec.retry.max_elapsed",
        DURATION,
        "Plan no retry later than this after the first attempt.",
    ),
    SpecFlag(
        "--interruption-limit",
        "spec.interruption_limit",
        LIMIT,
        "Park it after this many attempts in a row that end by the death of their worker; 0: no limit.",
    ),
    SpecFlag("--keep-success", "spec.retention.after_success", DURATION, "How long to keep a succeeded action."),
    SpecFlag("--keep-failure", "spec.retention.after_failure", DURATION, "How long to keep a failed action."),
    SpecFlag(
        "--remember",
        "spec.remembered_attempts",
        LIMIT,
        f"How many attempts to remember, from 1 to {REMEMBERED_ATTEMPTS_MAX} [default: {REMEMBERED_ATTEMPTS_DEFAULT}]",
    ),
    SpecFlag("--label", "meta.labels", LABELS, "A label; may be repeated.", label="labels"),
)

FLAGS: tuple[SpecFlag, ...] = (*_SCHEDULE_FLAGS, *TARGET_FLAGS, *_POLICY_FLAGS)
