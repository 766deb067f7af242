"""`python -m benchmarks.peers`: Clepsydra beside its peers, on this machine, in alternating rounds.

Installs the peers into a folder of its own, starts a real PostgreSQL with its default durability, has every tool do
the same work, and writes what it measured as JSON, as a table in Markdown and as a plot. Machines are noisy: compare
figures of one run with each other, not with those of another day, and leave the machine alone meanwhile.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from benchmarks.peers import installed, places, server
from benchmarks.peers.adapters import ON_REQUEST, TOOLS
from benchmarks.peers.cases import CASES
from benchmarks.peers.conditions import others_percent, session
from benchmarks.peers.places import Places
from benchmarks.peers.plan import Step, steps
from benchmarks.peers.plot import plot
from benchmarks.peers.report import report
from benchmarks.peers.results import Measurement, NotComparable, Results
from benchmarks.peers.sizes import FULL, QUICK, Sizes
from benchmarks.peers.tool import Language

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "results" / "peers" / "results.json"
_WITHOUT_NODE = "npm could not install it, which needs a registry that npm can reach"
_DOCS = _ROOT / "docs" / "peers" / "results.json"


def main() -> None:
    # Whoever ends it finds nothing of it running afterwards.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    chosen = _arguments()
    console = Console(highlight=False)
    try:
        results = Results.read(chosen.json) if chosen.read else _measured(console, chosen)
    except (installed.NotInstalled, NotComparable) as failed:
        sys.exit(str(failed))
    for figures in (chosen.json, *([_DOCS] if chosen.publish else [])):
        _write_pages(console, results, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    names = f"cases ({', '.join(CASES)}), tools ({', '.join(TOOLS)})"
    parser.add_argument("--rounds", type=int, help="how often each figure is taken (default 3, quick 1)")
    parser.add_argument("--only", default="", help=f"only these, with commas between: {names}")
    parser.add_argument("--quick", action="store_true", help="little work, to see that everything runs")
    parser.add_argument("--json", type=Path, default=_RESULTS, help="where the figures go; table and plot go beside")
    parser.add_argument("--resume", action="store_true", help="keep what the file has; measure what is missing")
    parser.add_argument("--read", action="store_true", help="measure nothing: make table and plot of the file")
    parser.add_argument("--publish", action="store_true", help="write everything into docs/peers as well")
    chosen = parser.parse_args()
    if (chosen.read or chosen.resume) and not chosen.json.exists():
        parser.error(f"there are no figures at {chosen.json}")
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 3)
    only = [name.strip() for name in chosen.only.split(",") if name.strip()]
    for name in only:
        if name not in CASES and name not in TOOLS:
            parser.error(f"there is no {name!r}; there are {names}")
    chosen.cases = [name for name in CASES if name in only] or list(CASES)
    chosen.tools = [tool for tool in TOOLS.values() if tool.name in only] or [
        tool for tool in TOOLS.values() if tool.name not in ON_REQUEST
    ]
    return chosen


def _measured(console: Console, chosen: argparse.Namespace) -> Results:
    console.print("installing the peers …", style="dim")
    without_node = installed.install()
    tools = [tool for tool in chosen.tools if not (without_node and tool.language is Language.NODE)]
    left_out = {tool.name: _WITHOUT_NODE for tool in chosen.tools if tool not in tools}
    if left_out:
        said = str(without_node).splitlines()[0]
        console.print(f"going on without {', '.join(left_out)}: {_WITHOUT_NODE} ({said})", style="red", markup=False)
    sizes = QUICK if chosen.quick else FULL
    with server.running() as databases, places.opened(databases) as opened:
        results = Results.read(chosen.json) if chosen.resume else Results.begun(sizes)
        results.join(session(databases), tools, left_out, sizes)
        planned = [step for step in steps(tools, chosen.cases, chosen.rounds) if not results.has(*step.key)]
        began = time.perf_counter()
        for number, step in enumerate(planned, 1):
            passed = f"{(time.perf_counter() - began) / 60:.0f} min"
            name = f"{number}/{len(planned)}, {passed}: round {step.round}, {step.case}, {step.tool.name}"
            console.print(f"{name} ({step.variant}) … ", end="", style="dim")
            measured = _measure(opened, step, sizes)
            console.print(_line(measured), soft_wrap=True)
            results.add(measured)
            results.write(chosen.json)
    return results


def _measure(opened: Places, step: Step, sizes: Sizes) -> Measurement:
    """What goes wrong with one tool must not stop the others, so it is written down instead of raised."""
    disturbed = others_percent()
    began = time.perf_counter()
    figures: dict[str, float] = {}
    error = None
    try:
        figures = CASES[step.case](opened, step.tool, step.settings, sizes)
    except Exception as failed:
        error = f"{type(failed).__name__}: {failed}"
    took_s = time.perf_counter() - began
    return Measurement(*step.key, figures, took_s, error, disturbed)


def _line(measured: Measurement) -> str:
    if measured.error is not None:
        return f"[red]failed[/red] after {measured.took_s:.0f} s: {measured.error.splitlines()[0]}"
    figures = ", ".join(f"{name} {value:,.6g}" for name, value in measured.figures.items())
    return f"{measured.took_s:.0f} s: {figures}"


def _write_pages(console: Console, results: Results, figures: Path) -> None:
    results.write(figures)
    page, picture = figures.with_name("table.md"), figures.with_name("plot.svg")
    page.write_text(report(results, picture.name))
    picture.write_text(plot(results))
    console.print(f"figures, table and plot: {figures}, {page}, {picture}")


if __name__ == "__main__":
    main()
