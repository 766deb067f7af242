"""`python -m benchmarks`: measures this machine, in rounds, and prints medians with their spread.

Machines are noisy: compare figures of one run with each other, not with those of another day.
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import measures
from benchmarks.measures import Figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each figure is taken (default 3)")
    parser.add_argument("--actions", type=int, default=20_000, help="actions for creates and drain (default 20000)")
    parser.add_argument("--stored", type=int, default=100_000, help="actions in store for lateness (default 100000)")
    parser.add_argument("--only", help="only the measures whose name contains this")
    parser.add_argument("--json", type=Path, help="also write the figures of every round to this file")
    chosen = parser.parse_args()
    work: dict[str, Callable[[], Figures]] = {
        "creates": lambda: measures.creates(chosen.actions),
        "drain by one": lambda: measures.drain(chosen.actions, 1),
        "drain by two": lambda: measures.drain(chosen.actions, 2),
        "lateness": lambda: measures.lateness(200, 20, chosen.stored),
        "idle": lambda: measures.idle(10),
    }
    taken: dict[str, list[float]] = defaultdict(list)
    console = Console()
    for round_number in range(1, chosen.rounds + 1):
        for name, measure in work.items():
            if chosen.only and chosen.only not in name:
                continue
            console.print(f"round {round_number}: {name} …", style="dim")
            for figure, value in measure().items():
                taken[figure].append(value)
    console.print(table_of(taken))
    if chosen.json:
        chosen.json.write_text(json.dumps(taken, indent=2) + "\n")


def table_of(taken: dict[str, list[float]]) -> Table:
    table = Table("figure", title="medians, and the spread of the rounds")
    for column in ("median", "least", "most"):
        table.add_column(column, justify="right")
    for figure, values in taken.items():
        table.add_row(figure, *(f"{value:,.1f}" for value in (statistics.median(values), min(values), max(values))))
    return table


if __name__ == "__main__":
    main()
