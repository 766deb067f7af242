"""Loads a batch into a temporary table in few steps.

SQLite takes many rows in one `INSERT … VALUES (…), (…), …`, and runs it without Python's global lock, while a step per
row would take and give back that lock for every row. Statements of a few fixed sizes are prepared once and cover any
batch.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import apsw

# Powers of two cover any batch in the fewest steps. A statement with more rows would be too long for apsw to keep it.
_SIZES = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)


@cache
def _insert(table: str, columns: int, rows: int) -> str:
    row = f"({','.join('?' * columns)})"
    return f"INSERT INTO temp.{table} VALUES {','.join([row] * rows)}"  # noqa: S608 - the names are our own


def load(connection: apsw.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert the rows, whose values are in the order of the table's columns."""
    if not rows:
        return
    columns, start = len(rows[0]), 0
    for size in _SIZES:
        while len(rows) - start >= size:
            chunk = rows[start : start + size]
            connection.execute(_insert(table, columns, size), tuple(chain.from_iterable(chunk)))
            start += size
