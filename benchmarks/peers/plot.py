"""The results as a picture: a panel of bars for each figure, drawn by hand so that nothing has to be installed."""

import math
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

from benchmarks.peers.results import Results

_OURS, _THEIRS, _INK, _QUIET = "#1f6feb", "#b8bfc9", "#1f2328", "#656d76"
_WIDTH, _BAR, _LABEL, _GAP = 520, 18, 144, 28
_COLUMNS = 2
_FONT = "-apple-system, Segoe UI, Helvetica, Arial, sans-serif"


class Bar(NamedTuple):
    label: str
    value: float
    is_ours: bool
    # A mark further out than the bar, with its own text.
    mark: float | None = None


class Panel(NamedTuple):
    title: str
    note: str
    bars: list[Bar]
    is_logarithmic: bool = False
    digits: int = 0


def plot(results: Results) -> str:
    panels = [panel for panel in _panels(results) if panel.bars]
    rows = [panels[n : n + _COLUMNS] for n in range(0, len(panels), _COLUMNS)]
    drawn: list[str] = []
    top = 24
    for row in rows:
        for column, panel in enumerate(row):
            drawn.extend(_drawn(panel, 24 + column * (_WIDTH + 24), top))
        top += max(_height(panel) for panel in row) + _GAP
    width = 24 + _COLUMNS * (_WIDTH + 24)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" '
            f'font-family="{_FONT}" font-size="12">',
            f'<rect width="{width}" height="{top}" fill="white"/>',
            *drawn,
            "</svg>",
            "",
        ]
    )


def _panels(results: Results) -> Iterator[Panel]:
    more = "more is better"
    yield Panel("Creates a second, in bulk", more, _bars(results, "creates", "bulk_per_s"))
    yield Panel("Creates a second, 64 in flight", more, _bars(results, "creates", "in_flight_per_s"))
    yield Panel("Due jobs executed a second, one worker", more, _bars(results, "drain by one", "executed_per_s"))
    yield Panel("Due jobs executed a second, two workers", more, _bars(results, "drain by two", "executed_per_s"))
    stored = results.about["sizes"]["stored"]
    for case, place in (("lateness", "empty store"), ("lateness in a full store", f"{stored:,} jobs in store")):
        yield Panel(
            f"Milliseconds late, {place}",
            "bar: median, mark: 99th percentile; logarithmic; less is better",
            _bars(results, case, "median_ms", "p99_ms"),
            is_logarithmic=True,
            digits=1,
        )
    yield Panel(
        "Percent of a core when idle, at the same settings",
        "the worker; mark: with its share of the server; less is better",
        _idle_bars(results),
        digits=1,
    )
    yield Panel("Memory of a draining worker, MB", "less is better", _bars(results, "drain by one", "peak_mb"))


def _bars(results: Results, case: str, figure: str, mark: str | None = None) -> list[Bar]:
    """Ours at default settings, peers at their best."""
    bars = []
    for tool in results.tools():
        is_ours = tool in results.ours()
        variant = "default" if is_ours else "best"
        found = results.spread(case, variant, tool, figure)
        marked = results.spread(case, variant, tool, mark) if mark else None
        if found is not None:
            bars.append(Bar(tool, found.median, is_ours, marked.median if marked else None))
    return bars


def _idle_bars(results: Results) -> list[Bar]:
    own = _bars(results, "lateness", "idle_cpu_percent", "idle_server_cpu_percent")
    return [bar._replace(mark=bar.value + bar.mark if bar.mark else None) for bar in own]


def _height(panel: Panel) -> int:
    return 44 + len(panel.bars) * (_BAR + 6)


def _drawn(panel: Panel, left: int, top: int) -> Iterator[str]:
    yield _text(left, top + 14, panel.title, _INK, weight="600", size=14)
    yield _text(left, top + 32, panel.note, _QUIET)
    room = _WIDTH - _LABEL - 110
    least, most = _range(panel)

    def length(value: float) -> float:
        if panel.is_logarithmic:
            return room * max(0.0, math.log(max(value, least) / least) / math.log(most / least))
        return room * value / most

    for n, bar in enumerate(panel.bars):
        y = top + 44 + n * (_BAR + 6)
        ink, weight = (_INK, "600") if bar.is_ours else (_INK, "400")
        yield _text(left + _LABEL - 8, y + 13, bar.label, ink, anchor="end", weight=weight)
        fill = _OURS if bar.is_ours else _THEIRS
        yield (
            f'<rect x="{left + _LABEL}" y="{y}" width="{max(1.0, length(bar.value)):.1f}" height="{_BAR}" rx="2" '
            f'fill="{fill}"/>'
        )
        end, text = length(bar.value), f"{bar.value:,.{panel.digits}f}"
        if bar.mark is not None:
            x = left + _LABEL + length(bar.mark)
            yield f'<rect x="{x - 1:.1f}" y="{y}" width="2" height="{_BAR}" fill="{_INK}"/>'
            end, text = max(end, length(bar.mark)), f"{text} / {bar.mark:,.{panel.digits}f}"
        yield _text(left + _LABEL + end + 6, y + 13, text, ink, weight=weight)


def _range(panel: Panel) -> tuple[float, float]:
    values = [value for bar in panel.bars for value in (bar.value, bar.mark) if value is not None]
    most = max([*values, 1e-9])
    return (
        (min([*(value for value in values if value > 0), most / 10]) / 2, most) if panel.is_logarithmic else (0, most)
    )


def _text(
    x: float, y: float, text: str, fill: str, *, anchor: str = "start", weight: str = "400", size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}">{escape(text)}</text>'
    )
