"""Tables of any length: printed page by page, with widths from the first page and the terminal.

On a narrow terminal, cells of the columns that matter least are cut, and at last the columns are left out. Columns that
must not be cut are always whole. In a pipe nothing is cut.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from clepsydra.tools.format.terminal import allows_escapes

_GAP = "  "
_ELLIPSIS = "…"
_BOLD, _NORMAL = "\x1b[1m", "\x1b[0m"


class Column(NamedTuple):
    name: str
    # 0: never cut. The column with the greatest number is cut first.
    cut_first: int = 0
    is_right_aligned: bool = False


class StreamedTable:
    def __init__(
        self, columns: Sequence[Column], write: Callable[[str], object], width: int | None, *, is_bold: bool
    ) -> None:
        self._columns = columns
        self._write = write
        self._width = width
        self._is_bold = is_bold
        # The width of each column; 0 leaves the column out. Known with the first page.
        self._widths: list[int] | None = None

    @classmethod
    def on_stdout(cls, columns: Sequence[Column]) -> "StreamedTable":
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return cls(columns, sys.stdout.write, width, is_bold=allows_escapes(sys.stdout))

    def add_page(self, rows: Sequence[Sequence[str]]) -> None:
        """Print a page of rows. The first page decides on the widths, so an empty table has one page too."""
        if self._widths is None:
            self._widths = self._fitted(rows)
            header = self._line([column.name for column in self._columns], self._widths)
            self._write(f"{_BOLD}{header}{_NORMAL}\n" if self._is_bold else f"{header}\n")
        widths = self._widths
        self._write("".join(f"{self._line(row, widths)}\n" for row in rows))
        sys.stdout.flush()

    def _fitted(self, rows: Sequence[Sequence[str]]) -> list[int]:
        widths = [
            max(cell_len(column.name), *(cell_len(row[place]) for row in rows), 0)
            for place, column in enumerate(self._columns)
        ]
        if self._width is None:
            return widths
        cuttable = [place for place, column in enumerate(self._columns) if column.cut_first]
        by_importance = sorted(cuttable, key=lambda place: -self._columns[place].cut_first)
        # First cells are cut down to the width of their header; if that is not enough, columns are left out.
        for smallest in ([cell_len(column.name) for column in self._columns], [0] * len(widths)):
            for place in by_importance:
                excess = _total(widths) - self._width
                if excess > 0:
                    widths[place] = max(widths[place] - excess, smallest[place])
                if widths[place] < cell_len(self._columns[place].name):
                    widths[place] = 0
        return widths

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        shown = [
            self._cell(cell, column, width)
            for cell, column, width in zip(cells, self._columns, widths, strict=True)
            if width
        ]
        return _GAP.join(shown).rstrip()

    def _cell(self, cell: str, column: Column, width: int) -> str:
        length = cell_len(cell)
        if length > width:
            is_cut = self._width is not None and column.cut_first
            return set_cell_size(cell, width - 1) + _ELLIPSIS if is_cut else cell
        padding = " " * (width - length)
        return padding + cell if column.is_right_aligned else cell + padding


def _total(widths: Sequence[int]) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + len(_GAP) * (len(shown) - 1)
