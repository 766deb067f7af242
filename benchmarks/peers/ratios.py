"""Ours divided by the best peer's, round by round: what disturbs a round disturbs both sides of its ratio."""

import statistics
from typing import NamedTuple

from benchmarks.peers.results import Results, Spread


class Ratio(NamedTuple):
    spread: Spread
    # The peer that was best in the median, and its figure.
    peer: str
    peers_figure: float


def ratio(
    results: Results, case: str, ours: str, figure: str, *, variant: str = "default", less_is_better: bool = False
) -> Ratio | None:
    """Of ours, by default at our default settings, to the best peer at its best, whichever that is in each round."""
    best = min if less_is_better else max
    own = by_round(results, case, variant, ours, figure)
    others = {peer: by_round(results, case, "best", peer, figure) for peer in results.peers()}
    medians = {peer: statistics.median(figures.values()) for peer, figures in others.items() if figures}
    rounds = [number for number in own if any(number in figures for figures in others.values())]
    if not rounds or not medians:
        return None
    quotients = [
        own[number] / best(figures[number] for figures in others.values() if number in figures) for number in rounds
    ]
    peer = best(medians, key=lambda name: medians[name])
    spread = Spread(statistics.median(quotients), min(quotients), max(quotients), len(quotients))
    return Ratio(spread, peer, medians[peer])


def by_round(results: Results, case: str, variant: str, tool: str, figure: str) -> dict[int, float]:
    return {
        measured.round: measured.figures[figure]
        for measured in results.measurements
        if (measured.case, measured.variant, measured.tool) == (case, variant, tool) and figure in measured.figures
    }
