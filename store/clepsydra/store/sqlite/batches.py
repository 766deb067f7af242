"""Many rows in few statements.

SQLite takes many rows in one `INSERT … VALUES (…), (…), …`, and runs it without Python's global lock, while a step per
row would take and give back that lock for every row. A statement is prepared once for each number of rows, so there
may not be too many of those numbers.

What goes into a view is carried out by its triggers, and they pass over a row of NULLs: so a batch is filled up with
such rows to the next of a few sizes, and is one statement. A table would keep them: there a batch is taken in pieces.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypeVar

import apsw

T = TypeVar("T")

# A statement with more rows would be too long for apsw to keep it.
_MOST = 512
# Large sizes are a multiple of this.
_STEP = 64


def portions(batch: Sequence[T]) -> list[Sequence[T]]:
    """The batch in as few pieces as there must be statements."""
    return [batch[start : start + _MOST] for start in range(0, len(batch), _MOST)]


def filled_up(rows: int) -> int:
    """The size of the statement for so many rows.

    >>> [filled_up(rows) for rows in (1, 5, 33, 64, 65, 500)]
    [1, 8, 64, 64, 128, 512]
    """
    return -(-rows // _STEP) * _STEP if rows > _STEP else 1 << (rows - 1).bit_length()


@cache
def into_view(view: str, columns: int, rows: int, shared: int = 0) -> str:
    """A statement for so many rows; the values that all of them share come first, and are bound once.

    >>> into_view("v", columns=2, rows=3, shared=1)
    'INSERT INTO temp.v VALUES (?1,?,?),(?1,?,?),(?1,?,?),(?1,?,?)'
    """
    row = ",".join([*(f"?{n + 1}" for n in range(shared)), *("?" * columns)])
    return f"INSERT INTO temp.{view} VALUES " + ",".join([f"({row})"] * filled_up(rows))  # noqa: S608 - our own name


def fill_up(bindings: list[Any], columns: int, rows: int) -> None:
    """Add the NULLs that such a statement wants beyond the rows that there are."""
    bindings += [None] * (columns * (filled_up(rows) - rows))


def load(connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows into a temporary table, in the order of its columns."""
    for piece in _pieces(rows):
        connection.execute(_into_table(table, len(piece[0]), len(piece)), tuple(chain.from_iterable(piece)))


@cache
def _into_table(table: str, columns: int, rows: int) -> str:
    row = ",".join("?" * columns)
    return f"INSERT INTO temp.{table} VALUES " + ",".join([f"({row})"] * rows)  # noqa: S608 - the name is our own


def _pieces(batch: Sequence[T]) -> Iterator[Sequence[T]]:
    """Large pieces, and what is left over as a piece of its own.

    >>> [len(piece) for piece in _pieces(range(1100))]
    [512, 512, 64, 12]
    """
    start = 0
    while left := len(batch) - start:
        size = min(_MOST, left - left % _STEP) or left
        yield batch[start : start + size]
        start += size
