"""Damage to the file of a store."""

from pathlib import Path

import apsw


def damage(store: Path, *statements: str) -> None:
    connection = apsw.Connection(str(store))
    connection.set_busy_timeout(10_000)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def make_read_only(store: Path) -> None:
    """Write a format version that SQLite can only read. Permissions would not stop root."""
    header = bytearray(store.read_bytes())
    assert header[18] == 2, "WAL"
    header[18] = 3
    store.write_bytes(header)
