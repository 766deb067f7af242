"""Loads the settings. Precedence rises in this order: defaults, a TOML file, environment variables, flags.

The loader refuses what cannot be right, with a sentence that names the origin: an unknown key or variable, a value of
the wrong type, values that contradict each other.
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

from clepsydra.core.lifecycle import FASTPATH_VARIABLE
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.format.json_output import json_text
from clepsydra.tools.settings.model import PREFIX, SECTIONS, SETTINGS, Setting, Settings

CONFIG_VARIABLE = PREFIX + "CONFIG"

# Variables that are not settings: the name of the TOML file, and a switch for tests.
_OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, FASTPATH_VARIABLE})

_KEYS = {setting.key: setting for setting in SETTINGS.values()}
_VARIABLES = {setting.variable: setting for setting in SETTINGS.values()}

# Kubernetes sets these in every container if there is a service whose name starts with "clepsydra".
_SERVICE_LINK = re.compile(PREFIX + r"(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP)(_\w+)?)")
_SERVICE_LINK_URL = re.compile(r"(tcp|udp)://")

# Parts of pydantic's messages that a sentence leaves out.
_PYDANTIC_PHRASES = re.compile(r"^(Input|String|Value) (?=should)|, unable to .*")


class GivenValue(NamedTuple):
    """A value from a file, an environment variable or a flag."""

    value: Any
    # How messages name the origin: "clepsydra.toml", "CLEPSYDRA_STORE", "--store".
    origin: str


class LoadedSettings(NamedTuple):
    settings: Settings
    # The origin of each value that is not the default.
    origins: Mapping[tuple[str, ...], str]


def load_settings(
    config: str | None, environment: Mapping[str, str], flags: Mapping[tuple[str, ...], GivenValue]
) -> LoadedSettings:
    """Load all settings. `config` is the name of the TOML file, if a flag gives it. Raises Failure."""
    given: dict[tuple[str, ...], GivenValue] = {}
    config = config or environment.get(CONFIG_VARIABLE)
    if config:
        given.update(_from_file(config))
    given.update(_from_environment(environment))
    given.update(flags)
    return LoadedSettings(_validated(given), {path: value.origin for path, value in given.items()})


def setting_of_key(key: str, origin: str) -> Setting:
    """The setting with this key, for `--set`."""
    if key not in _KEYS:
        raise _refusal(f"{origin}: there is no setting {key!r}; {_suggestion(key, _KEYS)}")
    return _KEYS[key]


def parse_value(setting: Setting, text: str, origin: str) -> Any:
    """The value of a setting that an environment variable or `--set` gives as text."""
    try:
        return TypeAdapter(setting.annotation).validate_strings(text)
    except ValidationError as error:
        raise _refusal(*(_wrong_value(setting.key, origin, detail) for detail in error.errors())) from error


def _from_file(name: str) -> Iterator[tuple[tuple[str, ...], GivenValue]]:
    try:
        tables = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise _refusal(f"the configuration file {name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refusal(f"the configuration file {name} is not text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _refusal(f"the configuration file {name} is not TOML: {error}") from error
    yield from _from_table(name, tables, ())


def _from_table(
    name: str, table: Mapping[str, Any], prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], GivenValue]]:
    for key, value in table.items():
        path = (*prefix, key)
        if path in SETTINGS:
            if isinstance(value, date | time):
                raise _refusal(f"{name}: {key} is a date or a time, and no setting takes one: put it in quotes")
            yield path, GivenValue(value, name)
        elif len(path) == 1 and key in SECTIONS:
            if not isinstance(value, dict):
                raise _refusal(f"{name}: {key} is a table, not a value: write [{key}] and its settings below")
            yield from _from_table(name, value, path)
        else:
            full_key = ".".join(path)
            suggestion = _suggestion(full_key, [*_KEYS, *SECTIONS])
            raise _refusal(f"{name}: there is no setting {full_key!r}; {suggestion}")


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], GivenValue]]:
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in _OTHER_VARIABLES:
            continue
        setting = _VARIABLES.get(name)
        if setting is not None:
            yield setting.path, GivenValue(parse_value(setting, environment[name], name), name)
        elif not _is_service_link(name, environment[name]):
            suggestion = _suggestion(name, [*_VARIABLES, CONFIG_VARIABLE], PREFIX)
            raise _refusal(f"the environment variable {name} is not a setting of Clepsydra; {suggestion}")


def _is_service_link(name: str, value: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_LINK_URL.match(value)))


def _validated(given: Mapping[tuple[str, ...], GivenValue]) -> Settings:
    tree: dict[str, Any] = {}
    for path, (value, _origin) in given.items():
        table = tree
        for step in path[:-1]:
            table = table.setdefault(step, {})
        table[path[-1]] = value
    try:
        # Strict mode refuses "30" where a number belongs. In JSON, strict mode still takes text for a path.
        return Settings.model_validate_json(json.dumps(tree, default=str), strict=True)
    except ValidationError as error:
        raise _refusal(*(_sentence(given, detail) for detail in error.errors())) from error


def _sentence(given: Mapping[tuple[str, ...], GivenValue], detail: ErrorDetails) -> str:
    path = tuple(str(step) for step in detail["loc"])
    if path in given:
        return _wrong_value(".".join(path), given[path].origin, detail)
    # Values contradict each other: name the origins of all values in that section.
    origins = dict.fromkeys(value.origin for key, value in given.items() if key[: len(path)] == path)
    section = f"the {path[0]} settings" if path else "the settings"
    return f"{section} contradict each other ({', '.join(origins)}): {_reason(detail)}"


def _wrong_value(key: str, origin: str, detail: ErrorDetails) -> str:
    if detail["type"] == "value_error":
        return f"{origin}: {_reason(detail)}"
    given = detail["input"]
    # A list or a table that was given for a store may hold a password.
    may_be_secret = key == "store" and not isinstance(given, int | float)
    value = type(given).__name__ if may_be_secret else json_text(given, default=str)
    return f"{origin}: {key} {_reason(detail)}, not {value}"


def _reason(detail: ErrorDetails) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return _PYDANTIC_PHRASES.sub("", detail["msg"])


def _suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The known name that is most like a wrong one. A prefix of all names does not count as likeness."""
    candidates = [each.removeprefix(prefix) for each in known]
    close = difflib.get_close_matches(name.removeprefix(prefix), candidates, 1, 0.7)
    return f"did you mean {prefix}{close[0]}?" if close else "`clepsydra config` lists them all"


def _refusal(*sentences: str) -> Failure:
    return Failure("\n".join(sentences), Exit.USAGE)
