"""The settings as a TOML file that explains itself and can be read back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clepsydra.store.url import without_password
from clepsydra.tools.settings import SETTINGS, Setting
from clepsydra.tools.sources import Effective


def as_toml(effective: Effective) -> str:
    """Every setting: what it means, its value, and who gave it."""
    return "\n".join(_lines(effective))


def _lines(effective: Effective) -> Iterator[str]:
    section: tuple[str, ...] = ()
    for setting in SETTINGS.values():
        if setting.path[:-1] != section:
            section = setting.path[:-1]
            yield f"\n[{'.'.join(section)}]"
        yield f"# {setting.description}"
        value: Any = effective.settings
        for step in setting.path:
            value = getattr(value, step)
        yield _assignment(setting, value, effective.origins.get(setting.path, "default"))


def _assignment(setting: Setting, value: Any, origin: str) -> str:
    name = setting.path[-1]
    if value is None:
        return f"# {name} is not set"
    if setting.key == "store":
        value = without_password(value)
    return f"{name} = {toml_value(value)}  # {origin}"


def toml_value(value: str | int | bool | Path) -> str:
    """
    >>> toml_value(True), toml_value(30_000), toml_value('a "b"')
    ('true', '30000', '"a \\\\"b\\\\""')
    """
    # What JSON writes, TOML reads; except for the one control character that JSON lets through.
    written = json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
    return written.replace("\x7f", "\\u007f")
