"""Flags that more than one command has. Most stand for a setting: a flag overrides all other origins of its value."""

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from clepsydra.tools.settings.loader import GivenValue, LoadedSettings, load_settings, parse_value, setting_of_key

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Keys of `click.Context.meta`.
_GIVEN = "clepsydra.tools.settings.given"
_CONFIG = "clepsydra.tools.settings.config"


def _setting_flag(key: str, *names: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """A flag that stands for the setting with this key."""

    def keep(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value is not None:
            _given(ctx)[tuple(key.split("."))] = GivenValue(value, names[0])

    return click.option(*names, callback=keep, expose_value=False, **attributes)


def _keep_config(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value == "":
        raise click.BadParameter("it is empty; is a variable of the shell not set?")
    ctx.meta[_CONFIG] = value


def _keep_set(ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> None:
    for each in values:
        key, equals, text = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not KEY=VALUE: write it like worker.lease_ms=20000")
        setting = setting_of_key(key.strip(), "--set")
        _given(ctx)[setting.path] = GivenValue(parse_value(setting, text.strip(), "--set"), "--set")


def _given(ctx: click.Context) -> dict[tuple[str, ...], GivenValue]:
    given: dict[tuple[str, ...], GivenValue] = ctx.meta.setdefault(_GIVEN, {})
    return given


def _processes(section: str) -> Callable[[_Command], _Command]:
    help_text = "Start this many processes, where one core is not enough."
    return _setting_flag(f"{section}.processes", "--processes", type=int, metavar="N", help=help_text)


_config = click.option(
    "--config",
    metavar="FILE",
    callback=_keep_config,
    expose_value=False,
    help="A TOML file with settings; also CLEPSYDRA_CONFIG.",
)
_set = click.option(
    "--set",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_keep_set,
    expose_value=False,
    help="Any setting, such as worker.lease_ms=20000; `clepsydra config` lists them.",
)
store = _setting_flag("store", "--store", metavar="URL", help="The URL of the store; also CLEPSYDRA_STORE.")
server = _setting_flag(
    "server", "--server", metavar="HOST:PORT", help="The scheduler to connect to; also CLEPSYDRA_SERVER."
)
listen = _setting_flag(
    "scheduler.listen", "--listen", metavar="HOST:PORT", help="The address to listen on; port 0: any free port."
)
name = _setting_flag("worker.name", "--name", metavar="NAME", help="The worker's name. [default: host:pid]")
handlers = _setting_flag("worker.handlers", "--handlers", metavar="MODULE", help="A module that registers handlers.")
worker_processes = _processes("worker")
scheduler_processes = _processes("scheduler")
_log_level = _setting_flag(
    "log.level", "--log-level", metavar="LEVEL", help="The lowest level to log: debug, info, warning or error."
)
_log_format = _setting_flag(
    "log.format", "--log-format", metavar="FORMAT", help="text, json, or auto: text on a terminal, json elsewhere."
)

# A supervisor gives this to its child processes: the descriptor of the socket between them.
child_of = click.option("--child-of", type=int, hidden=True)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def log_flags(command: _Command) -> _Command:
    return _log_level(_log_format(command))


def with_loaded_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the settings with their origins as the first argument of the command."""

    @_config
    @_set
    @functools.wraps(command)
    def load_and_call(**arguments: Any) -> Any:
        return command(_load(click.get_current_context()), **arguments)

    return load_and_call


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the settings as the first argument of the command."""

    @with_loaded_settings
    @functools.wraps(command)
    def without_origins(loaded: LoadedSettings, **arguments: Any) -> Any:
        return command(loaded.settings, **arguments)

    return without_origins


def _load(ctx: click.Context) -> LoadedSettings:
    return load_settings(ctx.meta.get(_CONFIG), os.environ, ctx.meta.get(_GIVEN, {}))
