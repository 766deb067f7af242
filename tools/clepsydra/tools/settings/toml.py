"""The settings as a TOML file: each with its description, its value and its origin. The loader can read it back."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clepsydra.store.url_options import without_password
from clepsydra.tools.format.json_output import json_text
from clepsydra.tools.settings.loader import LoadedSettings
from clepsydra.tools.settings.model import SETTINGS, Setting

# How JSON escapes a character beyond the first 65,536.
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")


def as_toml(loaded: LoadedSettings) -> str:
    return "\n".join(_lines(loaded))


def _lines(loaded: LoadedSettings) -> Iterator[str]:
    section: tuple[str, ...] = ()
    for setting in SETTINGS.values():
        if setting.path[:-1] != section:
            section = setting.path[:-1]
            yield f"\n[{'.'.join(section)}]"
        yield f"# {setting.description}"
        value: Any = loaded.settings
        for step in setting.path:
            value = getattr(value, step)
        yield _assignment(setting, value, loaded.origins.get(setting.path, "default"))


def _assignment(setting: Setting, value: Any, origin: str) -> str:
    name = setting.path[-1]
    if value is None:
        return f"# {name} is not set"
    if setting.key == "store":
        value = without_password(value)
    return f"{name} = {_toml_value(value)}  # {origin}"


def _toml_value(value: str | int | bool | Path) -> str:
    """
    >>> _toml_value(True), _toml_value(30_000), _toml_value('a "b"')
    ('true', '30000', '"a \\\\"b\\\\""')
    """
    # JSON text is TOML text, except for characters that JSON escapes by two: TOML has another escape for these.
    written = json_text(str(value) if isinstance(value, Path) else value)
    return _PAIR.sub(_long_escape, written)


def _long_escape(pair: re.Match[str]) -> str:
    character = json.loads(f'"{pair[0]}"')
    return f"\\U{ord(character):08x}"
