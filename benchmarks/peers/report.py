"""The results as a page of Markdown: medians of the rounds, with the least and the most beside them."""

import json
from collections.abc import Iterator, Sequence

from benchmarks.peers.ratios import ratio
from benchmarks.peers.results import Results, Spread
from benchmarks.peers.targets import targets

_CREATES = {"one by one": "single_per_s", "64 in flight": "in_flight_per_s", "in bulk": "bulk_per_s"}
_WAYS = {"single_per_s": "single", "in_flight_per_s": "in flight", "bulk_per_s": "bulk"}
_LATE = {"median": "median_ms", "99th percentile": "p99_ms", "most": "most_ms"}
_USES = {
    "creates": "creating",
    "default": "workers by default",
    "drain": "workers for a backlog",
    "lateness": "workers for jobs on time",
    "recovery": "workers for the work of dead ones",
}


def report(results: Results, plot: str) -> str:
    sections = (
        _head(results, plot),
        _targets(results),
        _creates(results),
        _drain(results),
        _lateness(results),
        _idle(results),
        _kill(results),
        _tools(results),
        _failures(results),
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _head(results: Results, plot: str) -> Iterator[str]:
    about, sizes = results.about, results.about["sizes"]
    yield "# Clepsydra beside its peers"
    yield ""
    yield "Made by `make bench-peers`, not by hand. Medians of alternating rounds, the least and the most in brackets."
    yield ""
    for session in about["sessions"]:
        machine = session["machine"]
        yield (
            f"Taken {session['taken_at'].replace('T', ' ')} on {machine['cores']} cores of {machine['processor']} with "
            f"{machine['memory_gb']} GB, {machine['system']}, {machine['file_system']}; a small write is on disk after "
            f"{machine['sync_ms']:.2f} ms; the load at the start was {machine['load_at_start']:.1f}."
        )
        yield ""
    yield f"All measurements together took {about['took_s'] / 60:.0f} minutes. {_disturbed(results)}"
    yield ""
    versions = {name: version for session in about["sessions"] for name, version in session["versions"].items()}
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
    yield ""
    yield (
        f"PostgreSQL has every setting at its default: `fsync`, `synchronous_commit` and `full_page_writes` are on; "
        f"SQLite is in WAL mode and `synchronous = FULL` in every tool. A "
        f"backlog is {sizes['drain_jobs']:,} due jobs; a full store holds {sizes['stored']:,} jobs of the far future; "
        f"{sizes['late_jobs']:,} jobs on time are spread over {sizes['spread_s']:g} s. Peers are measured at the best "
        "settings known to us that take at most 1,000 jobs in a call and 2,000 into a worker's hands (some are faster "
        "with more: see benchmarks/peers/README.md), ours as they come and, for a backlog, also tuned: see [their "
        "settings](#the-tools-and-their-settings)."
    )
    yield ""
    yield f"![The same figures as bars]({plot})"


def _disturbed(results: Results) -> str:
    shares = sorted(measured.disturbed_percent for measured in results.measurements) or [0.0]
    return (
        f"Others used {shares[len(shares) // 2]:.0f} % of the machine in the median, and {shares[-1]:.0f} % at most, "
        "as seen for a moment before each of them."
    )


def _targets(results: Results) -> Iterator[str]:
    yield "## What we want to reach"
    yield ""
    yield "Ours divided by the best peer's, round by round, where it says so."
    yield ""
    rows = [
        [target.what, target.wanted, target.found, "yes" if target.is_reached else "**no**"]
        for target in targets(results)
    ]
    yield from _table(["what", "wanted", "found", "reached"], rows)


def _creates(results: Results) -> Iterator[str]:
    yield "## Durable creates a second"
    yield ""
    yield "Ours through gRPC, at a scheduler in another process; peers in the process of the application."
    yield ""
    rows = []
    for tool, variant, name in _rows(results, "creates"):
        cells = []
        for figure in _CREATES.values():
            cannot = _WAYS[figure] in results.about["tools"][tool]["cannot"]
            cells.append("cannot" if cannot else _number(results.spread("creates", variant, tool, figure)))
        rows.append([name, *cells])
    for ours in results.ours():
        found = [ratio(results, "creates", ours, figure) for figure in _CREATES.values()]
        rows.append([f"*{ours} / best peer*", *(_ratio(quotient and quotient.spread) for quotient in found)])
    yield from _table(["tool", *_CREATES], rows)


def _drain(results: Results) -> Iterator[str]:
    yield "## Due no-op jobs executed a second"
    yield ""
    yield (
        "From when all workers are at it to the last outcome in the store; a peer that is not at the end after "
        f"{results.about['sizes']['drain_s']:g} s is measured by what it has done by then. The memory is the most "
        "that a worker had."
    )
    yield ""
    cases = ("drain by one", "drain by two")
    names = {row: None for case in cases for row in _rows(results, case)}
    rows = []
    for tool, variant, name in names:
        cells = [
            "cannot"
            if case in results.about["tools"][tool]["cannot"]
            else _number(results.spread(case, variant, tool, "executed_per_s"))
            for case in cases
        ]
        rows.append([name, *cells, _number(results.spread("drain by one", variant, tool, "peak_mb"))])
    for ours, variant, name in names:
        if ours in results.ours():
            found = [ratio(results, case, ours, "executed_per_s", variant=variant) for case in cases]
            quotients = [_ratio(quotient and quotient.spread) for quotient in found]
            rows.append([f"*{name.strip('*')} / best peer*", *quotients, ""])
    yield from _table(["tool", "one worker", "two workers", "MB"], rows)


def _lateness(results: Results) -> Iterator[str]:
    yield "## Lateness, in milliseconds"
    yield ""
    yield (
        "A peer that rests for half a second or more between two looks for due jobs is measured once: its lateness is "
        "that pause, not noise. So are the defaults of all peers; in a full store only if their pause is shorter."
    )
    for case, title in (("lateness", "In an empty store"), ("lateness in a full store", "In a full store")):
        yield ""
        yield f"{title}:"
        yield ""
        rows = []
        for tool, variant, name in _rows(results, case):
            ran = results.spread(case, variant, tool, "ran")
            cells = [_number(results.spread(case, variant, tool, figure), digits=1) for figure in _LATE.values()]
            rows.append([name, variant, *cells, "" if ran is None else f"{ran.median:,.0f}"])
        yield from _table(["tool", "settings", *_LATE, "jobs started"], rows)


def _idle(results: Results) -> Iterator[str]:
    yield "## An idle worker"
    yield ""
    yield "Percent of a core, of the worker and of the server on its behalf, at the settings of the lateness above."
    yield ""
    rows = []
    for tool, variant, name in _rows(results, "lateness"):
        figures = ("idle_cpu_percent", "idle_server_cpu_percent", "idle_mb")
        cells = [_number(results.spread("lateness", variant, tool, figure), digits=1) for figure in figures]
        if results.about["tools"][tool]["store"] == "sqlite":
            cells[1] = ""
        rows.append([name, variant, *cells])
    yield from _table(["tool", "settings", "worker %", "server %", "MB"], rows)


def _kill(results: Results) -> Iterator[str]:
    yield "## After `kill -9` of a worker in the midst of a backlog"
    yield ""
    yield (
        "One round. Two workers, where a tool allows that; jobs of 50 ms; the killed worker is started again at once. "
        "Held: neither done nor lost when we stopped waiting. All done after: from the kill to the start of the last "
        "job."
    )
    yield ""
    rows = []
    for tool, variant, name in _rows(results, "kill"):
        counts = [
            _number(results.spread("kill", variant, tool, figure), alone=True)
            for figure in ("jobs", "lost", "twice", "held")
        ]
        done = results.spread("kill", variant, tool, "done_s")
        rows.append([name, *counts, f"{done.median:.1f} s" if done else "", results.about["tools"][tool]["recovers"]])
    yield from _table(
        ["tool", "jobs", "lost", "run twice", "still held", "all done after", "held work is taken up"], rows
    )


def _tools(results: Results) -> Iterator[str]:
    yield "## The tools and their settings"
    for name in results.tools():
        described = results.about["tools"][name]
        yield ""
        yield f"### {name}"
        yield ""
        yield described["about"].strip()
        yield ""
        for use, title in _USES.items():
            settings = described["settings"][use]
            yield f"- {title}: " + (f"`{json.dumps(settings)}`" if settings else "as it comes")
        for what, why in described["cannot"].items():
            yield f"- cannot do *{what}*: {why}"
    for name, why in results.about["left_out"].items():
        yield ""
        yield f"### {name}"
        yield ""
        yield f"Not measured: {why}."


def _failures(results: Results) -> Iterator[str]:
    failed = [measured for measured in results.measurements if measured.error is not None]
    yield "## What failed"
    yield ""
    if not failed:
        yield "Nothing."
    for measured in failed:
        first = (measured.error or "").strip().splitlines()[0][:300]
        yield f"- round {measured.round}, {measured.case}, {measured.tool} ({measured.variant}): {first}"


def _rows(results: Results, case: str) -> Iterator[tuple[str, str, str]]:
    """Tool, variant and name of whatever was measured in a case, ours first and in bold."""
    measured = {(found.tool, found.variant) for found in results.measurements if found.case == case}
    for tool in results.tools():
        is_ours = tool in results.ours()
        for variant in ("default", "best"):
            if (tool, variant) in measured:
                tuned = " (tuned)" if is_ours and variant == "best" else ""
                yield tool, variant, f"**{tool}{tuned}**" if is_ours else tool


def _number(spread: Spread | None, digits: int = 0, *, alone: bool = False) -> str:
    if spread is None:
        return "failed"
    if spread.rounds == 1 or alone:
        return f"{spread.median:,.{digits}f}"
    return f"{spread.median:,.{digits}f} ({spread.least:,.{digits}f} to {spread.most:,.{digits}f})"


def _ratio(spread: Spread | None) -> str:
    return _number(spread, digits=2) if spread else ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * (len(columns) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
