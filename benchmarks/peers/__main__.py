"""`python -m benchmarks.peers`: Clepsydra beside its peers, on this machine, in alternating rounds.

Installs the peers into a folder of its own, starts a real PostgreSQL with its default durability, has every tool do
the same work, and writes what it measured as JSON, as a table in Markdown and as a plot. Machines are noisy: compare
figures of one run with each other, not with those of another day, and leave the machine alone meanwhile.
"""

import argparse
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks.peers import installed, places, server
from benchmarks.peers.adapters import ON_REQUEST, TOOLS
from benchmarks.peers.cases import CASES
from benchmarks.peers.places import Places
from benchmarks.peers.plan import Step, steps
from benchmarks.peers.plot import plot
from benchmarks.peers.report import report
from benchmarks.peers.results import Measurement, Results, machine
from benchmarks.peers.server import Databases
from benchmarks.peers.sizes import FULL, QUICK, Sizes
from benchmarks.peers.tool import Tool

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "results" / "peers.json"
_DOCS = _ROOT / "docs" / "benchmarks.md"


def main() -> None:
    # Whoever ends it finds nothing of it running afterwards.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    chosen = _arguments()
    console = Console(highlight=False)
    if chosen.read:
        results = Results.read(chosen.read)
    else:
        results = _measured(console, chosen)
        console.print(f"figures: {chosen.json}")
    for page in (chosen.json.with_suffix(".md"), *([_DOCS] if chosen.publish else [])):
        page.write_text(report(results, page.with_suffix(".svg").name))
        page.with_suffix(".svg").write_text(plot(results))
        console.print(f"table and plot: {page}, {page.with_suffix('.svg')}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, help="how often each figure is taken (default 3, quick 1)")
    parser.add_argument("--only", help=f"only these cases, with commas between: {', '.join(CASES)}")
    parser.add_argument("--tools", help=f"only these tools, with commas between: {', '.join(TOOLS)}")
    parser.add_argument("--quick", action="store_true", help="little work, to see that everything runs")
    parser.add_argument("--json", type=Path, default=_RESULTS, help="where to write the figures; the table goes beside")
    parser.add_argument("--read", type=Path, help="measure nothing: make table and plot of these figures")
    parser.add_argument("--publish", action="store_true", help="write table and plot into docs/ as well")
    chosen = parser.parse_args()
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 3)
    chosen.cases = _chosen(parser, chosen.only, list(CASES))
    usual = [name for name in TOOLS if name not in ON_REQUEST]
    chosen.tools = [TOOLS[name] for name in (_chosen(parser, chosen.tools, list(TOOLS)) if chosen.tools else usual)]
    return chosen


def _chosen(parser: argparse.ArgumentParser, asked: str | None, known: list[str]) -> list[str]:
    if asked is None:
        return known
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in known:
            parser.error(f"there is no {name!r}; there are {', '.join(known)}")
    return names


def _measured(console: Console, chosen: argparse.Namespace) -> Results:
    console.print("installing the peers …", style="dim")
    installed.install()
    sizes = QUICK if chosen.quick else FULL
    began = time.perf_counter()
    with server.running() as databases, places.opened(databases) as opened:
        results = Results(_about(databases, sizes, chosen.tools))
        for step in steps(chosen.tools, chosen.cases, chosen.rounds):
            console.print(f"round {step.round}, {step.case}, {step.tool.name} ({step.variant}) … ", end="", style="dim")
            measured = _measure(opened, step, sizes)
            console.print(_line(measured), soft_wrap=True)
            results.measurements.append(measured)
            results.about["took_s"] = time.perf_counter() - began
            results.write(chosen.json)
    return results


def _measure(opened: Places, step: Step, sizes: Sizes) -> Measurement:
    """What goes wrong with one tool must not stop the others, so it is written down instead of raised."""
    began = time.perf_counter()
    figures: dict[str, float] = {}
    error = None
    try:
        figures = CASES[step.case](opened, step.tool, step.settings, sizes)
    except Exception as failed:
        error = f"{type(failed).__name__}: {failed}"
    took_s = time.perf_counter() - began
    return Measurement(step.round, step.case, step.variant, step.tool.name, figures, took_s, error)


def _about(databases: Databases, sizes: Sizes, tools: list[Tool]) -> dict[str, object]:
    return {
        "taken_at": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": {**installed.versions(), "postgresql": databases.version()},
        "sizes": sizes._asdict(),
        "tools": {tool.name: tool.described() for tool in tools},
        "took_s": 0.0,
    }


def _line(measured: Measurement) -> str:
    if measured.error is not None:
        return f"[red]failed[/red] after {measured.took_s:.0f} s: {measured.error.splitlines()[0]}"
    figures = ", ".join(f"{name} {value:,.6g}" for name, value in measured.figures.items())
    return f"{measured.took_s:.0f} s: {figures}"


if __name__ == "__main__":
    main()
