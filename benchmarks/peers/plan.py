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
# Taken in the first round only: matters of seconds or minutes, not of noise, and an hour is long enough.
_ONCE = ("kill",)
# The same, of the peers: whoever looks for work once a second is late by half of it in every round.
_ONCE_FOR_PEERS = (("lateness", DEFAULT), ("lateness in a full store", DEFAULT))


class Step(NamedTuple):
    round: int
    case: str
    variant: str
    tool: Tool

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
    return [DEFAULT, BEST] if case in _AT_DEFAULT else [BEST]


def steps(tools: Sequence[Tool], cases: Sequence[str], rounds: int) -> Iterator[Step]:
    for number in range(1, rounds + 1):
        for case in (case for case in CASES if case in cases):
            for tool in tools if number % 2 else reversed(tools):
                for variant in variants(tool, case):
                    if _is_wanted(number, case, variant, tool):
                        yield Step(number, case, variant, tool)


def _is_wanted(number: int, case: str, variant: str, tool: Tool) -> bool:
    if number == 1:
        return True
    return case not in _ONCE and (tool.is_ours or (case, variant) not in _ONCE_FOR_PEERS)
