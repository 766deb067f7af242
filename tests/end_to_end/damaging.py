"""Damage to a store's file, such as no version of Clepsydra does."""

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
    """By its format and not by permissions, which mean nothing to root: a write version that SQLite does not know."""
    header = bytearray(store.read_bytes())
    assert header[18] == 2, "WAL"
    header[18] = 3
    store.write_bytes(header)
