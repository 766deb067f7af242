"""Flags that several commands share. A flag that stands for a setting has the last word over it."""

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from clepsydra.tools.sources import Effective, Flag, effective_settings, read_text, setting_named

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FLAGS = "clepsydra.tools.flags"
_CONFIG = "clepsydra.tools.config"


def setting_flag(key: str, *names: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """An option that stands for the setting with this key."""

    def remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None:
            _flags(ctx)[tuple(key.split("."))] = Flag(names[0], value)

    return click.option(*names, callback=remember, expose_value=False, **attributes)


def _remember_config(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[_CONFIG] = value


def _remember_set(ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> None:
    for given in values:
        key, equals, text = given.partition("=")
        if not equals:
            raise click.BadParameter(f"{given!r} is not KEY=VALUE: write it like worker.lease_ms=20000")
        setting = setting_named(key.strip(), "--set")
        _flags(ctx)[setting.path] = Flag("--set", read_text(setting, text.strip(), "--set"))


def _flags(ctx: click.Context) -> dict[tuple[str, ...], Flag]:
    flags: dict[tuple[str, ...], Flag] = ctx.meta.setdefault(_FLAGS, {})
    return flags


_config = click.option(
    "--config",
    metavar="FILE",
    callback=_remember_config,
    expose_value=False,
    help="A TOML file with settings; also CLEPSYDRA_CONFIG.",
)
_set = click.option(
    "--set",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_remember_set,
    expose_value=False,
    help="Any setting, such as worker.lease_ms=20000; `clepsydra config` lists them.",
)
store = setting_flag("store", "--store", metavar="URL", help="Where the store is; also CLEPSYDRA_STORE.")
server = setting_flag(
    "server", "--server", metavar="HOST:PORT", help="The scheduler to talk to; also CLEPSYDRA_SERVER."
)
listen = setting_flag("scheduler.listen", "--listen", metavar="HOST:PORT", help="Where to listen; port 0 takes any.")
name = setting_flag("worker.name", "--name", metavar="NAME", help="The worker's name; host:pid if not given.")
handlers = setting_flag("worker.handlers", "--handlers", metavar="MODULE", help="A module that registers handlers.")
worker_processes = setting_flag(
    "worker.processes", "--processes", type=int, metavar="N", help="How many processes, where one core is not enough."
)
scheduler_processes = setting_flag(
    "scheduler.processes",
    "--processes",
    type=int,
    metavar="N",
    help="How many processes, where one core is not enough.",
)
# What a parent tells its children: the descriptor that connects them.
child_of = click.option("--child-of", type=int, hidden=True)
_log_level = setting_flag(
    "log.level", "--log-level", metavar="LEVEL", help="debug, info, warning or error; what is worth a line."
)
_log_format = setting_flag(
    "log.format", "--log-format", metavar="FORMAT", help="text, json, or auto: text on a terminal only."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def log_flags(command: _Command) -> _Command:
    return _log_level(_log_format(command))


def reads_effective(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command, as its first argument, the settings and where they came from."""

    @_config
    @_set
    @functools.wraps(command)
    def with_settings(**arguments: Any) -> Any:
        return command(_effective(click.get_current_context()), **arguments)

    return with_settings


def reads_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command, as its first argument, the settings."""

    @_config
    @_set
    @functools.wraps(command)
    def with_settings(**arguments: Any) -> Any:
        return command(_effective(click.get_current_context()).settings, **arguments)

    return with_settings


def _effective(ctx: click.Context) -> Effective:
    return effective_settings(ctx.meta.get(_CONFIG), os.environ, ctx.meta.get(_FLAGS, {}))
