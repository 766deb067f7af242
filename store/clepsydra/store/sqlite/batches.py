"""Many rows in few statements.

SQLite takes many rows in one `INSERT … VALUES (…), (…), …`, and runs it without Python's global lock, while a step per
row would take and give back that lock for every row. A statement is prepared once for each number of rows, so there
may not be too many of those numbers.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import apsw

# A statement with more rows would be too long for apsw to keep it.
_MOST = 512
# Large pieces have a multiple of this, and what is left over is a piece of its own.
_STEP = 64


@cache
def _into_temporary(table: str, shared: int, columns: int) -> str:
    values = [*(f"?{n + 1}" for n in range(shared)), *("?" * columns)]
    return f"INSERT INTO temp.{table} VALUES ({', '.join(values)})"  # noqa: S608 - the names are our own


@cache
def for_rows(insert: str, rows: int) -> str:
    """A statement that inserts one row, made to insert so many.

    >>> for_rows("INSERT INTO t (a, b) VALUES (?, ?);", 2)
    'INSERT INTO t (a, b) VALUES (?,?),(?,?)'
    """
    head, values, row = insert.rstrip(";").rpartition("VALUES ")
    return head + values + ",".join([row.replace(" ", "")] * rows)


def chunks(batch: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The batch in few pieces.

    >>> [len(chunk) for chunk in chunks(range(1100))]
    [512, 512, 64, 12]
    """
    start = 0
    while left := len(batch) - start:
        size = min(_MOST, left - left % _STEP) or left
        yield batch[start : start + size]
        start += size


def insert(
    connection: apsw.Connection, statement: str, rows: Sequence[Sequence[Any]], shared: tuple[Any, ...] = ()
) -> None:
    """Insert a chunk of rows by a statement that is written for one; values that all rows share are bound once."""
    connection.execute(for_rows(statement, len(rows)), (*shared, *chain.from_iterable(rows)))


def load(
    connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]], shared: tuple[Any, ...] = ()
) -> None:
    """Insert rows into a temporary table or view, in the order of its columns; what they share comes first."""
    for chunk in chunks(rows):
        insert(connection, _into_temporary(table, len(shared), len(chunk[0])), chunk, shared)
