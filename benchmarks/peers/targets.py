"""What we want to reach, held against what was measured."""

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.peers.ratios import by_round, ratio
from benchmarks.peers.results import Results

_SQLITE, _POSTGRES = "clepsydra-sqlite", "clepsydra-postgres"
_EMPTY, _FULL = "lateness", "lateness in a full store"


class Target(NamedTuple):
    what: str
    wanted: str
    found: str
    is_reached: bool


def targets(results: Results) -> Iterator[Target]:
    """Those that the run tells something about."""
    yield from _at_least(
        results, "bulk creates through gRPC, to the best peer's", "creates", _SQLITE, "bulk_per_s", 1.0
    )
    yield from _at_least(
        results,
        "creates 64 in flight, to the best peer's in its own process",
        "creates",
        _SQLITE,
        "in_flight_per_s",
        1.0,
    )
    yield from _of_empty_calls(results)
    for variant, handler in (("default", ""), ("best", ", tuned")):
        for tool, store, wanted in ((_SQLITE, "SQLite", 1.0), (_POSTGRES, "PostgreSQL", 0.7)):
            what = f"drain by one worker, {store}{handler}"
            yield from _at_least(results, what, "drain by one", tool, "executed_per_s", wanted, variant)
    for tool, store in ((_SQLITE, "SQLite"), (_POSTGRES, "PostgreSQL")):
        yield from _at_most(results, f"lateness in a full store, median, {store}", _FULL, tool, "median_ms", 3.0, "ms")
        yield from _at_most(
            results, f"lateness in a full store, 99th percentile, {store}", _FULL, tool, "p99_ms", 10.0, "ms"
        )
        yield from _full_to_empty(results, tool, store)
        yield from _at_most(results, f"idle worker, {store}", _EMPTY, tool, "idle_cpu_percent", 2.0, "% of a core")
        yield from _memory(results, tool, store)
    yield _nothing_failed(results)


def _at_least(
    results: Results, what: str, case: str, ours: str, figure: str, wanted: float, variant: str = "default"
) -> Iterator[Target]:
    found = ratio(results, case, ours, figure, variant=variant)
    if found is not None:
        text = f"{found.spread.median:.2f} ({found.spread.least:.2f} to {found.spread.most:.2f}) of {found.peer}"
        yield Target(what, f"at least {wanted:g}", text, found.spread.median >= wanted)


def _of_empty_calls(results: Results) -> Iterator[Target]:
    created = by_round(results, "creates", "default", _SQLITE, "in_flight_per_s")
    empty = by_round(results, "creates", "default", _SQLITE, "empty_call_per_s")
    shares = [created[number] / empty[number] for number in created if number in empty]
    if shares:
        share, calls = statistics.median(shares), statistics.median(empty.values())
        text = f"{share:.2f} ({min(shares):.2f} to {max(shares):.2f}) of {calls:,.0f} calls a second"
        yield Target("creates 64 in flight, to empty gRPC calls", "at least 0.8", text, share >= 0.8)


def _at_most(
    results: Results, what: str, case: str, tool: str, figure: str, wanted: float, unit: str
) -> Iterator[Target]:
    found = results.spread(case, "default", tool, figure)
    if found is not None:
        text = f"{found.median:.1f} {unit} ({found.least:.1f} to {found.most:.1f})"
        yield Target(what, f"at most {wanted:g} {unit}", text, found.median <= wanted)


def _full_to_empty(results: Results, tool: str, store: str) -> Iterator[Target]:
    for figure, name in (("median_ms", "median"), ("p99_ms", "99th percentile")):
        full, empty = (results.spread(case, "default", tool, figure) for case in (_FULL, _EMPTY))
        if full is not None and empty is not None:
            grown = full.median / empty.median
            what = f"lateness in a full store to that in an empty one, {name}, {store}"
            yield Target(what, "at most 1.2", f"{grown:.2f}", grown <= 1.2)


def _memory(results: Results, tool: str, store: str) -> Iterator[Target]:
    figures = [
        figure
        for measured in results.measurements
        if measured.tool == tool
        for name, figure in measured.figures.items()
        if name in ("peak_mb", "idle_mb")
    ]
    if figures:
        yield Target(
            f"memory of a worker in any case, {store}", "below 120 MB", f"{max(figures):.0f} MB", max(figures) < 120.0
        )


def _nothing_failed(results: Results) -> Target:
    """Every run of ours ends with an audit, and with a count of what has run; either raises."""
    own = [measured for measured in results.measurements if measured.tool in results.ours()]
    failed = sum(measured.error is not None for measured in own)
    what = "runs of ours with a clean audit and nothing lost"
    return Target(what, "all", f"{len(own) - failed} of {len(own)}", failed == 0)
