"""Many rows in few statements.

SQLite takes many rows in one `INSERT … VALUES (…), (…), …`, and executes it without Python's global lock; one step for
each row would take that lock for each row. A statement is prepared once for each number of rows, so only a few
different numbers may occur.

Triggers of a view write what is inserted into it, and skip a row of NULLs: a batch is padded with such rows to the next
of a few sizes, and is one statement. A table would store the padding, so a batch for a table is split instead.
Inserting into tables takes less time than triggers do, which is worth one statement more if the batch is large.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import apsw

T = TypeVar("T")

# apsw does not cache longer statements; for a view, the values that rows share count as well.
_ROWS_OF_VIEW = 512
_ROWS_OF_TABLE = 1000
# Larger numbers of rows are multiples of this.
_STEP = 64


class View(NamedTuple):
    """A temporary view with triggers that write what is inserted into it."""

    name: str
    # How many values all rows of a statement share. They come first, and are bound once.
    shared: int
    # How many values each row has of its own.
    own: int

    def insert(self, bindings: list[Any]) -> str:
        """The statement that inserts these rows. Appends the NULLs of the padding to the bindings.

        >>> bindings = ["shared", 1, 2, 3, 4, 5, 6]
        >>> View("v", shared=1, own=2).insert(bindings)
        'INSERT INTO temp.v VALUES (?1,?,?),(?1,?,?),(?1,?,?),(?1,?,?)'
        >>> bindings
        ['shared', 1, 2, 3, 4, 5, 6, None, None]
        """
        rows = (len(bindings) - self.shared) // self.own
        size = _padded(rows)
        bindings += [None] * ((size - rows) * self.own)
        return _insert(f"temp.{self.name}", self.shared, self.own, size)


class Table(NamedTuple):
    """A table; its rows have values for all of its columns."""

    name: str
    columns: int

    def insert(self, rows: int) -> str:
        return _insert(self.name, 0, self.columns, rows)


def table_portion(rows: int) -> int:
    """How many of these rows to insert with one statement for each table: 0 if that is not worth it.

    >>> [table_portion(rows) for rows in (63, 130, 999, 1000)]
    [0, 128, 960, 1000]
    """
    return _ROWS_OF_TABLE if rows >= _ROWS_OF_TABLE else rows - rows % _STEP


def view_portions(batch: Sequence[T]) -> list[Sequence[T]]:
    """The batch in portions that fit into one statement for a view."""
    return [batch[start : start + _ROWS_OF_VIEW] for start in range(0, len(batch), _ROWS_OF_VIEW)]


def _padded(rows: int) -> int:
    """
    >>> [_padded(rows) for rows in (1, 5, 33, 64, 65, 500)]
    [1, 8, 64, 64, 128, 512]
    """
    return -(-rows // _STEP) * _STEP if rows > _STEP else 1 << (rows - 1).bit_length()


@cache
def _insert(table: str, shared: int, own: int, rows: int) -> str:
    row = ",".join([*(f"?{n + 1}" for n in range(shared)), *("?" * own)])
    return f"INSERT INTO {table} VALUES " + ",".join([f"({row})"] * rows)  # noqa: S608 - the name is our own


def load(connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Replace the content of a temporary table by these rows."""
    connection.execute(f"DELETE FROM temp.{table}")  # noqa: S608 - the name is our own
    for portion in _load_portions(rows):
        statement = _insert(f"temp.{table}", 0, len(portion[0]), len(portion))
        connection.execute(statement, tuple(chain.from_iterable(portion)))


def _load_portions(batch: Sequence[T]) -> Iterator[Sequence[T]]:
    """Large portions of a few sizes, and the remainder.

    >>> [len(portion) for portion in _load_portions(range(1100))]
    [512, 512, 64, 12]
    """
    start = 0
    while left := len(batch) - start:
        size = min(_ROWS_OF_VIEW, left - left % _STEP) or left
        yield batch[start : start + size]
        start += size
