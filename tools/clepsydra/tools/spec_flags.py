"""The flags that say what an action is. Each stands for one field of the API, in `add` and in `update` alike.

So a flag is a row of a table: its name, how it is read, and the path of its field. `add` writes the fields that were
given; `update` writes them too, and names their paths in the update mask.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import click
from google.protobuf.message import Message

from clepsydra.core.times import duration, timestamp
from clepsydra.tools.params import CONTENT, DURATION, HEADER, LABEL, TIME
from clepsydra.v1.action_pb2 import HttpHeader, Periodic, ScheduledAction

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NUMBER = click.IntRange(min=0)


class SpecFlag(NamedTuple):
    name: str
    path: str
    type: Any
    help: str
    # A flag without which this one has no meaning in a new action.
    needs: str | None = None
    # What the flag stands for, if it takes no value.
    constant: Any = None
    multiple: bool = False

    @property
    def parameter(self) -> str:
        return "spec_" + self.name.removeprefix("--").replace("-", "_")


FLAGS = (
    SpecFlag("--in", "spec.schedule.delay", DURATION, "Start after this long. Without --in and --at: now."),
    SpecFlag("--at", "spec.schedule.start_time", TIME, "Start at this time, such as 2027-01-01T07:30:00Z."),
    SpecFlag("--every", "spec.schedule.periodic.interval", DURATION, "Run again and again, at this interval."),
    SpecFlag(
        "--drift",
        "spec.schedule.periodic.mode",
        None,
        "Count the interval from the end of the last run.",
        needs="--every",
        constant=Periodic.DRIFT,
    ),
    SpecFlag("--until", "spec.schedule.periodic.end_time", TIME, "Plan no run after this time.", needs="--every"),
    SpecFlag("--max-runs", "spec.schedule.periodic.max_runs", _NUMBER, "End after so many runs.", needs="--every"),
    SpecFlag("--log", "spec.log.message", str, "Write this line to the worker's log."),
    SpecFlag("--http", "spec.http.url", str, "Send a request to this URL."),
    SpecFlag("--method", "spec.http.method", str, "GET, or POST with a body, unless given.", needs="--http"),
    SpecFlag("--header", "spec.http.headers", HEADER, "A header; may be repeated.", needs="--http", multiple=True),
    SpecFlag("--body", "spec.http.body", CONTENT, "The body.", needs="--http"),
    SpecFlag("--handler", "spec.handler.name", str, "Call the Python handler of this name."),
    SpecFlag("--payload", "spec.handler.payload", CONTENT, "What the handler is given.", needs="--handler"),
    SpecFlag("--content-type", "spec.handler.content_type", str, "The payload's media type.", needs="--handler"),
    SpecFlag("--timeout", "spec.attempt_timeout", DURATION, "How long one attempt may take. [default: 1m]"),
    SpecFlag("--start-deadline", "spec.start_deadline", DURATION, "Skip a run that could not start within this time."),
    SpecFlag("--max-attempts", "spec.retry.max_attempts", _NUMBER, "Attempts per run; 0: no limit. [default: 20]"),
    SpecFlag("--retry-delay", "spec.retry.first_delay", DURATION, "The wait before the first retry. [default: 1s]"),
    SpecFlag("--retry-multiplier", "spec.retry.multiplier", float, "How the wait grows. [default: 2]"),
    SpecFlag("--retry-max-delay", "spec.retry.max_delay", DURATION, "The longest wait. [default: 1h]"),
    SpecFlag("--retry-jitter", "spec.retry.jitter", float, "The random share of a wait, 0 to 1. [default: 0.1]"),
    SpecFlag("--retry-max-elapsed", "spec.retry.max_elapsed", DURATION, "Retry no later than this after the start."),
    SpecFlag(
        "--interruption-limit",
        "spec.interruption_limit",
        _NUMBER,
        "How often in a row its worker may die in it; 0: no limit. [default: 10]",
    ),
    SpecFlag("--keep-success", "spec.retention.after_success", DURATION, "Keep the record so long. [default: 1d]"),
    SpecFlag("--keep-failure", "spec.retention.after_failure", DURATION, "The same after failure. [default: 7d]"),
    SpecFlag("--label", "meta.labels", LABEL, "A label; may be repeated.", multiple=True),
)
_BY_NAME = {flag.name: flag for flag in FLAGS}

_ALTERNATIVES = (("--in", "--at"), ("--log", "--http", "--handler"))


def spec_flags(command: _Command) -> _Command:
    """Give a command all the flags that say what an action is."""
    for flag in reversed(FLAGS):
        takes: dict[str, Any] = {"is_flag": True} if flag.constant is not None else {"type": flag.type}
        command = click.option(flag.name, flag.parameter, multiple=flag.multiple, help=flag.help, **takes)(command)
    return command


def given_flags(arguments: Mapping[str, Any]) -> dict[SpecFlag, Any]:
    """The flags that were given, with their values, out of all arguments of a command."""
    given = {flag: arguments[flag.parameter] for flag in FLAGS if _is_given(flag, arguments[flag.parameter])}
    for names in _ALTERNATIVES:
        both = [name for name in names if _BY_NAME[name] in given]
        if len(both) > 1:
            raise click.UsageError(f"{both[0]} and {both[1]} exclude each other: give one of them")
    return given


def _is_given(flag: SpecFlag, value: Any) -> bool:
    return bool(value) if flag.multiple or flag.constant is not None else value is not None


def check_new(given: Iterable[SpecFlag]) -> None:
    """What a new action cannot do without, as far as flags can tell: the scheduler judges the rest."""
    names = {flag.name for flag in given}
    if not names.intersection(_ALTERNATIVES[1]):
        raise click.UsageError("say what the action does: --http URL, --handler NAME or --log LINE")
    for flag in given:
        if flag.needs is not None and flag.needs not in names:
            raise click.UsageError(f"{flag.name} has a meaning with {flag.needs} alone: give that too")


def write_flags(action: ScheduledAction, given: Mapping[SpecFlag, Any]) -> None:
    """Write what was given into an action's fields."""
    for flag, value in given.items():
        *steps, name = flag.path.split(".")
        message: Any = action
        for step in steps:
            message = getattr(message, step)
        # A log line may be empty, and is a log line all the same.
        message.SetInParent()
        try:
            _write(message, name, value if flag.constant is None else flag.constant)
        except (ValueError, TypeError) as error:
            raise click.BadParameter(f"the API cannot hold this value: {error}", param_hint=flag.name) from error


def _write(message: Any, name: str, value: Any) -> None:
    if name == "labels":
        message.labels.update(dict(value))
    elif name == "headers":
        message.headers.extend(HttpHeader(name=key, value=text) for key, text in value)
    elif isinstance(field := getattr(message, name), Message):
        field.CopyFrom(_WELL_KNOWN[field.DESCRIPTOR.full_name](value))
    else:
        setattr(message, name, value)


_WELL_KNOWN: dict[str, Callable[[int], Message]] = {
    "google.protobuf.Duration": duration,
    "google.protobuf.Timestamp": timestamp,
}
