"""Many rows in few statements.

SQLite takes many rows in one `INSERT … VALUES (…), (…), …`, and runs it without Python's global lock, while a step per
row would take and give back that lock for every row. A statement is prepared once for each number of rows, so there
may not be too many of those numbers.

What goes into a view is carried out by its triggers, and they pass over a row of NULLs: so a batch is filled up with
such rows to the next of a few sizes, and is one statement. A table would keep them: there a batch is taken in pieces.
To insert into tables takes less time than triggers do, which pays for a statement more if the batch is large.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import apsw

T = TypeVar("T")

# A statement with more rows would be too long for apsw to keep it; for a view also with the values that rows share.
_MOST = 512
_MOST_IN_TABLES = 1000
# Other large sizes are a multiple of this.
_STEP = 64


class View(NamedTuple):
    """A temporary view whose triggers carry out what is inserted into it."""

    name: str
    # Values that all rows of a statement have in common. They come first, and are bound once.
    shared: int
    # Values of each row's own.
    own: int

    def insert(self, bindings: list[Any]) -> str:
        """The statement that inserts these rows; to their values are added the NULLs that fill it up.

        >>> bindings = ["shared", 1, 2, 3, 4, 5, 6]
        >>> View("v", shared=1, own=2).insert(bindings)
        'INSERT INTO temp.v VALUES (?1,?,?),(?1,?,?),(?1,?,?),(?1,?,?)'
        >>> bindings
        ['shared', 1, 2, 3, 4, 5, 6, None, None]
        """
        rows = (len(bindings) - self.shared) // self.own
        size = _filled_up(rows)
        bindings += [None] * ((size - rows) * self.own)
        return _insert(f"temp.{self.name}", self.shared, self.own, size)


class Table(NamedTuple):
    """A table into which many rows are inserted, with values for all of its columns."""

    name: str
    columns: int

    def insert(self, rows: int) -> str:
        return _insert(self.name, 0, self.columns, rows)


def large_portion(rows: int) -> int:
    """How many of so many rows are worth a statement for each table; in the end less than a step is left over.

    >>> [large_portion(rows) for rows in (63, 130, 999, 1000)]
    [0, 128, 960, 1000]
    """
    return _MOST_IN_TABLES if rows >= _MOST_IN_TABLES else rows - rows % _STEP


def portions(batch: Sequence[T]) -> list[Sequence[T]]:
    """The batch in as few pieces as it needs statements to be inserted into a view."""
    return [batch[start : start + _MOST] for start in range(0, len(batch), _MOST)]


def _filled_up(rows: int) -> int:
    """
    >>> [_filled_up(rows) for rows in (1, 5, 33, 64, 65, 500)]
    [1, 8, 64, 64, 128, 512]
    """
    return -(-rows // _STEP) * _STEP if rows > _STEP else 1 << (rows - 1).bit_length()


@cache
def _insert(table: str, shared: int, own: int, rows: int) -> str:
    row = ",".join([*(f"?{n + 1}" for n in range(shared)), *("?" * own)])
    return f"INSERT INTO {table} VALUES " + ",".join([f"({row})"] * rows)  # noqa: S608 - the name is our own


def load(connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows into a temporary table, in the order of its columns."""
    for piece in _pieces(rows):
        statement = _insert(f"temp.{table}", 0, len(piece[0]), len(piece))
        connection.execute(statement, tuple(chain.from_iterable(piece)))


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
