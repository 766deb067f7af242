"""Where settings come from, in rising precedence: defaults, a TOML file, the environment, flags.

Whatever cannot be right is refused with a sentence that names its source: an unknown key or variable, a value of the
wrong type, values that contradict each other.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.settings import PREFIX, SECTIONS, SETTINGS, Setting, Settings

CONFIG_VARIABLE = PREFIX + "CONFIG"

_KEYS = {setting.key: setting for setting in SETTINGS.values()}
_VARIABLES = {setting.variable: setting for setting in SETTINGS.values()}

# What Kubernetes puts into the environment of every container for a service whose name starts with "clepsydra".
_SERVICE_LINK = re.compile(PREFIX + r"(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP)(_\w+)?)")
_SERVICE_LINK_URL = re.compile(r"(tcp|udp)://")

_PYDANTICS_WORDS = re.compile(r"^(Input|String|Value) (?=should)|, unable to .*")


class Given(NamedTuple):
    """A value, and who gave it."""

    value: Any
    # How messages name the source: "clepsydra.toml", "CLEPSYDRA_STORE", "--store".
    origin: str


class Flag(NamedTuple):
    """A setting given on the command line: text, if it is yet to be read as its type."""

    name: str
    value: Any


class Effective(NamedTuple):
    settings: Settings
    # Where each value came from; what is not named here is the default.
    origins: Mapping[tuple[str, ...], str]


def effective_settings(
    config: str | None, environment: Mapping[str, str], flags: Mapping[tuple[str, ...], Flag]
) -> Effective:
    """Read everything once. Raises Failure."""
    given: dict[tuple[str, ...], Given] = {}
    config = config or environment.get(CONFIG_VARIABLE)
    if config:
        given.update(_from_file(config))
    given.update(_from_environment(environment))
    given.update((path, Given(flag.value, flag.name)) for path, flag in flags.items())
    return Effective(_validated(given), {path: source.origin for path, source in given.items()})


def setting_named(key: str, origin: str) -> Setting:
    """The setting with this key, for `--set`."""
    if key not in _KEYS:
        raise _wrong(
            f"{origin}: there is no setting {key!r}; {_meant(key, _KEYS, '`clepsydra config` lists them all')}"
        )
    return _KEYS[key]


def read_text(setting: Setting, text: str, origin: str) -> Any:
    """The value that a text stands for, in the environment and in flags."""
    try:
        return TypeAdapter(setting.annotation).validate_strings(text)
    except ValidationError as error:
        raise _wrong(*(_sentence(setting.key, origin, detail) for detail in error.errors())) from error


def _from_file(name: str) -> Iterator[tuple[tuple[str, ...], Given]]:
    try:
        tables = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(f"the configuration file {name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _wrong(f"the configuration file {name} is not text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"the configuration file {name} is not TOML: {error}") from error
    yield from _leaves(name, tables, ())


def _leaves(name: str, table: Mapping[str, Any], prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Given]]:
    for key, value in table.items():
        path = (*prefix, key)
        if path in SETTINGS:
            if isinstance(value, date | time):
                raise _wrong(f"{name}: {key} is a date or a time, and no setting takes one: put it in quotes")
            yield path, Given(value, name)
        elif len(path) == 1 and key in SECTIONS:
            if not isinstance(value, dict):
                raise _wrong(f"{name}: {key} is a table, not a value: write [{key}] and its settings below")
            yield from _leaves(name, value, path)
        else:
            shown = ".".join(path)
            near = _meant(shown, [*_KEYS, *SECTIONS], "`clepsydra config` lists them all")
            raise _wrong(f"{name}: there is no setting {shown!r}; {near}")


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], Given]]:
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE:
            continue
        setting = _VARIABLES.get(name)
        if setting is not None:
            yield setting.path, Given(read_text(setting, environment[name], name), name)
        elif not _is_service_link(name, environment[name]):
            near = _meant(name, [*_VARIABLES, CONFIG_VARIABLE], "`clepsydra config` lists them all", PREFIX)
            raise _wrong(f"the environment variable {name} is not a setting of Clepsydra; {near}")


def _is_service_link(name: str, value: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_LINK_URL.match(value)))


def _validated(given: Mapping[tuple[str, ...], Given]) -> Settings:
    tree: dict[str, Any] = {}
    for path, (value, _origin) in given.items():
        table = tree
        for step in path[:-1]:
            table = table.setdefault(step, {})
        table[path[-1]] = value
    try:
        # Strict, so that a file says 30 where a number is meant; as JSON, so that a path may be written as text.
        return Settings.model_validate_json(json.dumps(tree, default=str), strict=True)
    except ValidationError as error:
        raise _wrong(*(_located(given, detail) for detail in error.errors())) from error


def _located(given: Mapping[tuple[str, ...], Given], detail: ErrorDetails) -> str:
    path = tuple(str(step) for step in detail["loc"])
    if path in given:
        return _sentence(".".join(path), given[path].origin, detail)
    # A contradiction between several values: name whoever gave one of them.
    origins = dict.fromkeys(source.origin for key, source in given.items() if key[: len(path)] == path)
    section = f"the {path[0]} settings" if path else "the settings"
    return f"{section} contradict each other ({', '.join(origins)}): {_reason(detail)}"


def _sentence(key: str, origin: str, detail: ErrorDetails) -> str:
    if detail["type"] == "value_error":
        return f"{origin}: {_reason(detail)}"
    value = detail["input"]
    shown = json.dumps(value, default=str, ensure_ascii=False)
    return f"{origin}: {key} {_reason(detail)}, not {shown}"


def _reason(detail: ErrorDetails) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return _PYDANTICS_WORDS.sub("", detail["msg"])


def _meant(name: str, known: Iterable[str], otherwise: str, prefix: str = "") -> str:
    """What a wrong name was probably meant to be; a prefix that all names have makes none of them alike."""
    near = difflib.get_close_matches(name.removeprefix(prefix), [k.removeprefix(prefix) for k in known], 1, 0.7)
    return f"did you mean {prefix}{near[0]}?" if near else otherwise


def _wrong(*sentences: str) -> Failure:
    return Failure("\n".join(sentences), Exit.USAGE)
