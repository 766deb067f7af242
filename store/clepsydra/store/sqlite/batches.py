"""Many rows in few statements.

SQLite takes many rows in one `INSERT … VALUES (…), (…), …`, and runs it without Python's global lock, while a step per
row would take and give back that lock for every row. Statements of a few fixed sizes are prepared once and cover any
batch.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import apsw

# Powers of two cover any batch in the fewest steps. A statement with more rows would be too long for apsw to keep it.
_SIZES = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)


@cache
def _into_temporary(table: str, columns: int) -> str:
    return f"INSERT INTO temp.{table} VALUES ({', '.join('?' * columns)})"  # noqa: S608 - the names are our own


@cache
def for_rows(insert: str, rows: int) -> str:
    """A statement that inserts one row, made to insert so many.

    >>> for_rows("INSERT INTO t (a, b) VALUES (?, ?);", 2)
    'INSERT INTO t (a, b) VALUES (?,?),(?,?)'
    """
    head, values, row = insert.rstrip(";").rpartition("VALUES ")
    return head + values + ",".join([row.replace(" ", "")] * rows)


def chunks(batch: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The batch in pieces of those sizes."""
    start = 0
    for size in _SIZES:
        while len(batch) - start >= size:
            yield batch[start : start + size]
            start += size


def insert(connection: apsw.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert a chunk of rows by a statement that is written for one."""
    connection.execute(for_rows(statement, len(rows)), tuple(chain.from_iterable(rows)))


def load(connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows into a temporary table; their values are in the order of its columns."""
    for chunk in chunks(rows):
        insert(connection, _into_temporary(table, len(chunk[0])), chunk)
