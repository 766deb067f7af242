"""docs/contributing.md: the walk of an action through the code is as the page lists it."""

import asyncio
import re

from tests.end_to_end.walk import ROOT, Function, defined, walk_of_an_action

_PAGE = ROOT / "docs" / "contributing.md"
_FUNCTIONS_MAX = 70
_FILES_MAX = 30
_ROW = re.compile(r"^\| `([\w.]+)` \| `(\w+)/…/([\w/.]+)` \| .+ \|$", re.MULTILINE)


def _listed() -> list[Function]:
    return [Function(f"{room}/clepsydra/{room}/{file}", name) for name, room, file in _ROW.findall(_PAGE.read_text())]


def _row(function: Function) -> str:
    room, _, _, file = function.file.split("/", 3)
    return f"| `{function.name}` | `{room}/…/{file}` | ... |"


def test_the_walk_is_short_and_lists_nothing_twice() -> None:
    listed = _listed()
    assert len(set(listed)) == len(listed)
    assert 0 < len(listed) <= _FUNCTIONS_MAX, "shorten the way of an action, or take inner functions out of the table"
    assert len({function.file for function in listed}) <= _FILES_MAX


def test_every_listed_function_exists() -> None:
    missing = []
    for function in _listed():
        try:
            defined(function)
        except (ImportError, AttributeError):
            missing.append(_row(function))
    assert not missing, "\n".join(["remove or rename these rows of the walk in docs/contributing.md:", *missing])


def test_an_action_goes_the_way_that_is_listed() -> None:
    calls = asyncio.run(walk_of_an_action())
    listed = set(_listed())
    stale = sorted(listed - calls.callers.keys())
    new = sorted(calls.steps() - listed)
    message = ["the walk in docs/contributing.md is not as an action goes (tests/end_to_end/walk.py has the rule)."]
    if stale:
        message += ["Remove these rows, because these functions are not called:", *map(_row, stale)]
    if new:
        message += ["Add these rows, where the action comes by, and say what they do:", *map(_row, new)]
    assert not stale, "\n".join(message)
    assert not new, "\n".join(message)
