"""What is measured of whom, in which order.

A round goes through the cases, and in each case through the tools, so that ours and theirs are measured minutes apart
at most; the order turns around from round to round.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.peers.cases import CASES
from benchmarks.peers.tool import Settings, Tool

DEFAULT, BEST = "default", "best"

# Which settings are the best for a case, as a tool has them.
_BEST = {
    "creates": "creates",
    "drain by one": "drain",
    "drain by two": "drain",
    "lateness": "lateness",
    "lateness in a full store": "lateness",
    "kill": "recovery",
}
# Where the settings that a tool comes with are of interest too; elsewhere peers are measured at their best only.
_AT_DEFAULT = ("lateness", "lateness in a full store")
# Taken in the first round only: matters of seconds or minutes, not of noise, and an hour is too long.
_ONCE = ("kill",)
# A peer that rests so long between two looks for due jobs is late by half of it in every round, and in every store.
_LONG_PAUSE_S = 0.5


class Step(NamedTuple):
    round: int
    case: str
    variant: str
    tool: Tool

    @property
    def key(self) -> tuple[int, str, str, str]:
        """The same as its measurement's."""
        return self.round, self.case, self.variant, self.tool.name

    @property
    def settings(self) -> Settings:
        return settings_of(self.tool, self.case, self.variant)


def settings_of(tool: Tool, case: str, variant: str) -> Settings:
    """Creating has one set of settings; it is the same at default and at best."""
    best: Settings = getattr(tool, _BEST[case])
    return best if variant == BEST or case == "creates" else tool.default


def variants(tool: Tool, case: str) -> list[str]:
    """Ours are measured as they come, and tuned as well if that differs; peers at their best."""
    if case in tool.cannot:
        return []
    if tool.is_ours:
        is_tuned = case != "creates" and settings_of(tool, case, BEST) not in ({}, tool.default)
        return [DEFAULT, BEST] if is_tuned else [DEFAULT]
    is_told_already = case == "lateness in a full store" and tool.default_pause_s >= _LONG_PAUSE_S
    return [DEFAULT, BEST] if case in _AT_DEFAULT and not is_told_already else [BEST]


def steps(tools: Sequence[Tool], cases: Sequence[str], rounds: int) -> Iterator[Step]:
    for number in range(1, rounds + 1):
        for case in (case for case in CASES if case in cases):
            for tool in tools if number % 2 else reversed(tools):
                for variant in variants(tool, case):
                    if number == 1 or not _is_taken_once(case, variant, tool):
                        yield Step(number, case, variant, tool)


def _is_taken_once(case: str, variant: str, tool: Tool) -> bool:
    if case in _ONCE:
        return True
    is_slow = variant == DEFAULT or tool.least_pause_s >= _LONG_PAUSE_S
    return case in _AT_DEFAULT and is_slow and not tool.is_ours
