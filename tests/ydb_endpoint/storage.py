"""Tables with versions: every commit has a number, and a snapshot sees all commits up to its own number.

A serializable transaction remembers which keys and ranges it has read. If it has written something, and a commit after
its snapshot changed any of them, it is aborted. Keys that it wrote without reading them conflict with nothing.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.ydb_endpoint.errors import Refused, Status, missing_table
from tests.ydb_endpoint.limits import Rights, ServerLimits, size_of
from tests.ydb_endpoint.yql.types import Maybe, Type

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = dict[str, Any]


class _Top:
    """Greater than any value: (prefix, TOP) is the end of all keys that start with the prefix."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self


TOP = _Top()


@dataclass
class Table:
    path: str
    columns: dict[str, Type]
    key: tuple[str, ...]
    # From CREATE TABLE: the keys at which the table is split, and the limits on its partitions.
    settings: dict[str, Any]
    keys: list[Key] = field(default_factory=list)
    versions: dict[Key, list[tuple[int, Row | None]]] = field(default_factory=dict)

    def key_of(self, row: Row) -> Key:
        return tuple(row[column] for column in self.key)

    def is_nullable(self, column: str) -> bool:
        return isinstance(self.columns[column], Maybe)

    def row_at(self, key: Key, snapshot: int) -> Row | None:
        for commit, row in reversed(self.versions.get(key, ())):
            if commit <= snapshot:
                return row
        return None

    def changed_at(self, key: Key) -> int:
        """The number of the last commit that changed this key; 0: none."""
        versions = self.versions.get(key)
        return versions[-1][0] if versions else 0

    def keys_between(self, low: Key, high: Key) -> list[Key]:
        """Both ends are included. An end may be a prefix of a key, closed by TOP."""
        return self.keys[bisect_left(self.keys, low) : bisect_right(self.keys, high)]

    def write(self, key: Key, row: Row | None, commit: int, oldest_snapshot: int) -> None:
        versions = self.versions.get(key)
        if versions is None:
            insort(self.keys, key)
            versions = self.versions[key] = []
        versions.append((commit, row))
        while len(versions) > 1 and versions[1][0] <= oldest_snapshot:
            del versions[0]


class Patch(dict[str, Any]):
    """Some columns of a row. A commit keeps the other columns as they are."""

    def onto(self, table: Table, row: Row | None) -> Row:
        return (dict.fromkeys(table.columns) if row is None else row) | self


class Database:
    """Directories, tables, and the number of the last commit."""

    def __init__(self, root: str, limits: ServerLimits | None = None) -> None:
        self.root = root
        self.limits = limits or ServerLimits()
        self.rights = Rights(root)
        self.directories = {root}
        self.tables: dict[str, Table] = {}
        # Tables that are being made.
        self.unfinished: set[str] = set()
        self.transactions: set[Transaction] = set()
        self.commits = 0
        # Every change of the schema raises it: a text that was compiled before is out of date.
        self.schema_version = 0
        self.snapshots: Counter[int] = Counter()

    def table(self, path: str) -> Table:
        table = self.tables.get(path)
        if table is None or path in self.unfinished or not self.rights.hold_for(path):
            raise missing_table(path)
        return table

    def restart_partitions(self, path: str) -> None:
        """As a restart, a split or a move does: the locks of every open transaction on this table are lost."""
        for transaction in self.transactions:
            if transaction.has_read(path):
                transaction.lose_locks()

    def begin(self, *, is_serializable: bool) -> "Transaction":
        return Transaction(self, is_serializable=is_serializable)

    def forget_deleted_rows(self) -> None:
        """Free the memory of deleted rows that no snapshot can see any more."""
        oldest = min(self.snapshots, default=self.commits)
        for table in self.tables.values():
            invisible = [key for key, versions in table.versions.items() if _is_invisible(versions, oldest)]
            for key in invisible:
                del table.versions[key]
                del table.keys[bisect_left(table.keys, key)]


def _is_invisible(versions: list[tuple[int, Row | None]], oldest_snapshot: int) -> bool:
    commit, row = versions[-1]
    return row is None and commit <= oldest_snapshot


class Transaction:
    def __init__(self, database: Database, *, is_serializable: bool) -> None:
        self._database = database
        self._snapshot = database.commits
        database.snapshots[self._snapshot] += 1
        database.transactions.add(self)
        self.is_serializable = is_serializable
        self.is_open = True
        self._has_lost_locks = False
        # Rows of ranges that were sent by the partitions, wanted or not.
        self.rows_read = 0
        self._writes: dict[str, dict[Key, Row | Patch | None]] = {}
        self._keys_read: set[tuple[str, Key]] = set()
        self._ranges_read: list[tuple[str, Key, Key]] = []

    def has_read(self, path: str) -> bool:
        return any(read[0] == path for read in (*self._keys_read, *self._ranges_read))

    def lose_locks(self) -> None:
        """Nobody can tell any more whether what was read has changed: the commit will be refused."""
        self._has_lost_locks = bool(self._keys_read or self._ranges_read)

    def get(self, table: Table, key: Key) -> Row | None:
        self._keys_read.add((table.path, key))
        return self._seen(table, key)

    def scan(self, table: Table, low: Key, high: Key) -> Iterator[Row]:
        """Rows in the order of the key, with the transaction's own writes."""
        self._ranges_read.append((table.path, low, high))
        written = self._writes.get(table.path, {})
        keys = set(table.keys_between(low, high)) | {key for key in written if low <= key <= high}
        for key in sorted(keys):
            row = self._seen(table, key)
            if row is not None:
                yield row

    def _seen(self, table: Table, key: Key) -> Row | None:
        written = self._writes.get(table.path, {})
        if key not in written:
            return table.row_at(key, self._snapshot)
        row = written[key]
        return row.onto(table, table.row_at(key, self._snapshot)) if isinstance(row, Patch) else row

    def replace(self, table: Table, key: Key, row: Row | None) -> None:
        """Write a whole row, or delete it. Reads nothing."""
        self._check_size(table, key, row or {})
        self._writes_to(table)[key] = row

    def upsert(self, table: Table, key: Key, columns: Row) -> None:
        """Write some columns. Reads nothing."""
        self._check_size(table, key, columns)
        writes = self._writes_to(table)
        earlier = writes.get(key, Patch())
        if isinstance(earlier, Patch):
            writes[key] = Patch(earlier | columns)
        else:
            writes[key] = Patch(columns).onto(table, earlier)

    def _check_size(self, table: Table, key: Key, row: Row) -> None:
        limits = self._database.limits
        if sum(map(size_of, key)) > limits.key_bytes:
            raise Refused(Status.BAD_REQUEST, f"Row key size is larger than the allowed threshold {limits.key_bytes}")
        for column, value in row.items():
            if size_of(value) > limits.value_bytes:
                shown = f"Row cell size of {table.path}.{column}"
                raise Refused(Status.BAD_REQUEST, f"{shown} is larger than the allowed threshold {limits.value_bytes}")

    def _writes_to(self, table: Table) -> "dict[Key, Row | Patch | None]":
        if not self.is_serializable:
            raise Refused(Status.GENERIC_ERROR, "Operation can't be performed in read only transaction")
        return self._writes.setdefault(table.path, {})

    def commit(self) -> None:
        try:
            if self._writes:
                self._check_reads()
                self._apply()
        finally:
            self.end()

    def _check_reads(self) -> None:
        tables = self._database.tables
        has_conflict = any(tables[path].changed_at(key) > self._snapshot for path, key in self._keys_read) or any(
            tables[path].changed_at(key) > self._snapshot
            for path, low, high in self._ranges_read
            for key in tables[path].keys_between(low, high)
        )
        if has_conflict or self._has_lost_locks:
            raise Refused(Status.ABORTED, "Transaction locks invalidated.")

    def _apply(self) -> None:
        database = self._database
        database.commits += 1
        oldest = min(database.snapshots)
        for path, rows in self._writes.items():
            table = database.tables[path]
            for key, row in rows.items():
                if isinstance(row, Patch):
                    row = row.onto(table, table.row_at(key, database.commits))
                table.write(key, row, database.commits, oldest)
        if database.commits % 1000 == 0:
            database.forget_deleted_rows()

    def end(self) -> None:
        """Release the snapshot, and forget what was not committed."""
        if self.is_open:
            self.is_open = False
            self._database.transactions.discard(self)
            self._database.snapshots[self._snapshot] -= 1
            self._database.snapshots += Counter()
