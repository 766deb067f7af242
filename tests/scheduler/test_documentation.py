"""docs/api.md says what the code does: every limit, every call, every error."""

import re
from pathlib import Path
from typing import Any

from clepsydra.core import limits, times
from clepsydra.core.action import spec as action_spec
from clepsydra.core.targets import KINDS
from clepsydra.core.validation.rules import format_duration
from clepsydra.scheduler.api.endpoint import SERVICE
from clepsydra.scheduler.api.grpc_status import CODES

# Where limits are defined.
LIMITS: list[Any] = [limits, action_spec, *KINDS.values()]
PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its first two lines."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def written(name: str, value: float) -> str:
    """A limit as the page writes it."""
    if name.endswith("_US"):
        return format_duration(int(value))
    if name.endswith("_BYTES"):
        mebibytes, rest = divmod(int(value), 1024 * 1024)
        return f"{value // 1024:,} KiB" if rest else f"{mebibytes} MiB"
    return f"{value:,}"


def test_every_limit_and_default_is_in_the_table_and_no_other() -> None:
    documented = {name.strip("`"): value for *_, value, name in rows("Limits and defaults")}
    in_code = {
        name: written(name, value)
        for module in LIMITS
        for name, value in vars(module).items()
        if re.fullmatch(r"[A-Z][A-Z_]+", name) and isinstance(value, int | float) and not hasattr(times, name)
    }

    assert documented == in_code


def test_every_call_is_in_the_table() -> None:
    assert [row[0].strip("`") for row in rows("Calls")] == [method.name for method in SERVICE.methods]


def test_every_error_is_in_the_table() -> None:
    documented = {(code.strip("`"), reason.strip("`")) for code, reason, *_ in rows("Errors")}

    assert documented == {(code, reason) for code, reason in CODES.values()}
