"""Directories and tables: make, list and remove them."""

from typing import Any, NamedTuple

from tests.ydb_endpoint.errors import Refused, Status, wrong_text
from tests.ydb_endpoint.storage import Database, Table
from tests.ydb_endpoint.yql.syntax import CreateTable, DropTable
from tests.ydb_endpoint.yql.types import Maybe, Primitive, Type

_NUMBERS = {
    "UNIFORM_PARTITIONS",
    "AUTO_PARTITIONING_PARTITION_SIZE_MB",
    "AUTO_PARTITIONING_MIN_PARTITIONS_COUNT",
    "AUTO_PARTITIONING_MAX_PARTITIONS_COUNT",
}
_SPLIT_TYPES = (Primitive("Uint64"), Primitive("Uint32"))
_SWITCHES = {"AUTO_PARTITIONING_BY_SIZE", "AUTO_PARTITIONING_BY_LOAD"}


class Child(NamedTuple):
    name: str
    is_table: bool


def make_directory(database: Database, path: str) -> None:
    parent = path.rpartition("/")[0]
    # The right on the directory above is checked first, whether this one exists or not.
    _check_right(database, parent)
    if path in database.tables:
        raise Refused(Status.SCHEME_ERROR, f"{path} is a table")
    if parent not in database.directories:
        raise Refused(Status.SCHEME_ERROR, f"Path does not exist: {parent}")
    database.directories.add(path)


def _check_right(database: Database, path: str) -> None:
    if not database.rights.hold_for(path):
        raise Refused(Status.UNAUTHORIZED, f"Access denied to {path}")


def children_of(database: Database, path: str) -> list[Child]:
    _check_right(database, path)
    if path not in database.directories:
        raise Refused(Status.SCHEME_ERROR, f"Path does not exist: {path}")
    tables = [Child(name, is_table=True) for parent, _, name in map(_split, database.tables) if parent == path]
    folders = [Child(name, is_table=False) for parent, _, name in map(_split, database.directories) if parent == path]
    return sorted(tables + folders)


def _split(path: str) -> tuple[str, str, str]:
    return path.rpartition("/")


def remove_directory(database: Database, path: str) -> None:
    if children_of(database, path):
        raise Refused(Status.SCHEME_ERROR, f"{path} is not empty")
    database.directories.remove(path)


def change_schema(database: Database, statement: CreateTable | DropTable) -> None:
    if isinstance(statement, CreateTable):
        create_table(database, statement)
    else:
        database.table(statement.name)
        del database.tables[statement.name]
        database.schema_version += 1


def create_table(database: Database, statement: CreateTable) -> None:
    path = statement.name
    _check_right(database, path.rpartition("/")[0])
    if path in database.unfinished:
        raise Refused(Status.OVERLOADED, f"{path}: path exists, but it is under creation", ("Executing CREATE TABLE",))
    if path in database.tables:
        if statement.if_not_exists:
            return
        raise Refused(Status.SCHEME_ERROR, f"{path} exists already")
    if path.rpartition("/")[0] not in database.directories:
        raise Refused(Status.SCHEME_ERROR, f"Path does not exist: {path.rpartition('/')[0]}")
    for column in statement.key:
        if column not in statement.columns:
            raise wrong_text(f"Undefined key column: {column}")
    _check_settings(statement)
    columns: dict[str, Type] = {
        name: kind if is_not_null else Maybe(kind) for name, (kind, is_not_null) in statement.columns.items()
    }
    database.tables[path] = Table(path, columns, statement.key, statement.settings)
    database.schema_version += 1


def _check_settings(statement: CreateTable) -> None:
    settings: dict[str, Any] = statement.settings
    for name, value in settings.items():
        if name == "PARTITION_AT_KEYS":
            _check_split(statement, value)
        elif name == "UNIFORM_PARTITIONS" and _first_of_key(statement) not in _SPLIT_TYPES:
            raise wrong_text(
                f"Uniform partitioning is not supported for a key that begins with {_first_of_key(statement)}"
            )
        elif not _is_valid(name, value):
            raise wrong_text(f"{name} cannot be {value}")
    if "PARTITION_AT_KEYS" in settings and "UNIFORM_PARTITIONS" in settings:
        raise wrong_text("Uniform partitions and partitions at keys settings are mutually exclusive")
    lowest = settings.get("AUTO_PARTITIONING_MIN_PARTITIONS_COUNT", 1)
    if lowest > settings.get("AUTO_PARTITIONING_MAX_PARTITIONS_COUNT", 50):
        raise wrong_text("fewer partitions are allowed than are required")


def _is_valid(name: str, value: Any) -> bool:
    if name in _SWITCHES:
        return isinstance(value, bool)
    return name in _NUMBERS and isinstance(value, int) and not isinstance(value, bool) and value > 0


def _first_of_key(statement: CreateTable) -> Type:
    return statement.columns[statement.key[0]][0]


def _check_split(statement: CreateTable, keys: Any) -> None:
    if _first_of_key(statement) not in _SPLIT_TYPES:
        raise wrong_text(f"the endpoint cannot split a table whose key begins with {_first_of_key(statement)}")
    if not isinstance(keys, list) or keys != sorted(set(keys)):
        raise wrong_text("PARTITION_AT_KEYS must be keys in their order")
