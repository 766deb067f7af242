"""Tables on the standard output."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clepsydra.tools.format.terminal import allows_escapes
from clepsydra.tools.format.text import printable

# In a pipe a table is as wide as it needs to be: nothing is cut or wrapped.
_PIPE_WIDTH = 1000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # By default rich ends the process with an exit code of its own.
        raise BrokenPipeError


def console() -> Console:
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    # Without a colour system rich writes no escape sequences. NO_COLOR alone would leave bold text.
    return _Console(highlight=False, width=width, color_system="auto" if allows_escapes(sys.stdout) else None)


def table(columns: Sequence[str], rows: Iterable[Sequence[Text | str]], right: Sequence[str] = ()) -> Table:
    """Columns and rows without lines between them, so that awk can split them."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=not sys.stdout.isatty())
    for row in rows:
        # rich takes square brackets in a str for markup; an id may contain them.
        made.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    return made


def name_value_table(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(Text(name), Text(printable(value)))
    return made
