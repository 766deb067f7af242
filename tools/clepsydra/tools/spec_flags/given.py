"""The flags of the table on a command: declared, checked, and written to an action."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.spec_flags.table import FLAGS
from clepsydra.v1.action_pb2 import ScheduledAction

_Command = TypeVar("_Command", bound=Callable[..., Any])


def spec_flags(command: _Command) -> _Command:
    """Give a command all flags of the table."""
    for flag in reversed(FLAGS):
        takes: dict[str, Any] = {"is_flag": True}
        if flag.type.parameter is not None:
            takes = {"type": flag.type.parameter, "metavar": flag.metavar, "multiple": flag.type.is_repeated}
        command = click.option(flag.name, flag.parameter, help=flag.help, **takes)(command)
    return command


def given_flags(arguments: Mapping[str, Any]) -> dict[SpecFlag, Any]:
    """The flags that the command line gives, with their values. `arguments` are all arguments of the command."""
    given = {flag: arguments[flag.parameter] for flag in FLAGS if flag.is_given(arguments[flag.parameter])}
    chosen: dict[str, SpecFlag] = {}
    for flag in given:
        if flag.one_of is None:
            continue
        other = chosen.setdefault(flag.one_of, flag)
        if other is not flag:
            raise click.UsageError(f"{other.name} and {flag.name} exclude each other: give one of them")
    return given


def check_new(given: Iterable[SpecFlag]) -> None:
    """Refuse flags that cannot make a new action. The scheduler checks their values."""
    names = {flag.name for flag in given}
    choices = [flag for flag in FLAGS if flag.one_of == "target"]
    if not any(flag.name in names for flag in choices):
        *others, last = (f"{flag.name} {flag.metavar}" for flag in choices)
        raise click.UsageError(f"say what the action does: {', '.join(others)} or {last}")
    for flag in given:
        if flag.needs is not None and flag.needs not in names:
            raise click.UsageError(f"{flag.name} needs {flag.needs}: give that too")


def write_flags(action: ScheduledAction, given: Mapping[SpecFlag, Any]) -> None:
    """Write the values to the fields of an action."""
    for flag, value in given.items():
        flag.write(action, value)
