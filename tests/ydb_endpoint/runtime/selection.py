"""SELECT: sources, joins, conditions, columns, order and limit."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tests.ydb_endpoint.errors import wrong_text
from tests.ydb_endpoint.runtime.access import Access, Way, access_to, columns_of
from tests.ydb_endpoint.runtime.aggregation import Aggregation, aggregation_of
from tests.ydb_endpoint.runtime.expressions import Cells, Compiled, ExpressionContext, Scope, compiled, condition
from tests.ydb_endpoint.storage import TOP, Table, Transaction
from tests.ydb_endpoint.yql.syntax import (
    AsTable,
    Binary,
    Column,
    Expression,
    Join,
    NamedRows,
    Select,
    Source,
    TableName,
)
from tests.ydb_endpoint.yql.types import UINT64, StructOf, Type, bare, is_rows, maybe


class SelectContext(ExpressionContext, Protocol):
    transaction: Transaction

    def named_rows(self, name: str) -> list[dict[str, Any]]: ...


class Read(NamedTuple):
    table: str
    way: Way
    # Whether the read itself stops at the LIMIT. A computed column in the same SELECT stands between the two.
    is_limited: bool = False


class Names(Protocol):
    """The parameters, named expressions and tables that a SELECT can name."""

    @property
    def parameters(self) -> Mapping[str, Type]: ...

    @property
    def named(self) -> Mapping[str, "Selection"]: ...

    @property
    def joins_are_lookups(self) -> bool: ...

    def table(self, name: str) -> Table: ...


Feed = Callable[[SelectContext], Iterable[Cells]]


@dataclass
class Selection:
    """A SELECT that can be executed."""

    columns: dict[str, Type]
    reads: list[Read]
    _feed: Feed
    _where: Compiled | None
    _items: dict[str, Compiled] | Aggregation
    _order_by: list[str]
    _limit: Compiled | None

    def rows(self, context: SelectContext) -> list[dict[str, Any]]:
        kept: Iterable[Cells] = self._feed(context)
        if self._where is not None:
            where = self._where.evaluate
            kept = (row for row in kept if where(row, context))
        if isinstance(self._items, Aggregation):
            return self._items.rows(kept, context)
        items = [(name, item.evaluate) for name, item in self._items.items()]
        rows = [{name: evaluate(row, context) for name, evaluate in items} for row in kept]
        if self._order_by:
            rows.sort(key=lambda row: [row[column] for column in self._order_by])
        return rows if self._limit is None else rows[: self._limit.evaluate({}, context)]


def selection_of(select: Select, names: Names) -> Selection:
    scope = Scope(parameters=names.parameters)
    feed, reads = _source(select, scope, names)
    for join in select.joins:
        feed = _joined(feed, join, scope, names, reads)
    items: dict[str, Compiled] | Aggregation | None = aggregation_of(select, scope)
    if items is None:
        if select.group_by:
            raise wrong_text("GROUP BY without an aggregate")
        items = _items(select, scope)
    columns = (
        items.result_types if isinstance(items, Aggregation) else {name: item.type for name, item in items.items()}
    )
    order = [column.name for column in select.order_by]
    for name in order:
        if name not in columns:
            raise wrong_text(f"ORDER BY {name}: the SELECT has no such column")
    return Selection(
        columns,
        reads,
        feed,
        None if select.where is None else condition(select.where, scope),
        items,
        order,
        _limit(select, scope),
    )


def _items(select: Select, scope: Scope) -> dict[str, Compiled]:
    items: dict[str, Compiled] = {}
    for expression, alias in select.items:
        name = alias
        if name is None and isinstance(expression, Column) and expression.qualifier is None:
            name = expression.name
        if name is None:
            raise wrong_text("every column of a SELECT has a name: write AS")
        if name in items:
            raise wrong_text(f"Duplicated member: {name}")
        items[name] = compiled(expression, scope)
    return items


def _limit(select: Select, scope: Scope) -> Compiled | None:
    if select.limit is None:
        return None
    limit = compiled(select.limit, scope)
    if limit.type != UINT64:
        raise wrong_text(f"LIMIT must be Uint64, not {limit.type}")
    return limit


def _source(select: Select, scope: Scope, names: Names) -> tuple[Feed, list[Read]]:
    source = select.source
    if source is None:
        return lambda _context: [{}], []
    if isinstance(source, TableName):
        table = names.table(source.name)
        _add_columns(scope, source.alias, table.columns)
        # WHERE selects the range of a table that is read alone. A table with joins is read completely.
        access = access_to(table, None if select.joins else select.where, scope)
        stops_at = _limit(select, scope) if _is_limit_pushed(select, table) else None
        return _reading(access, source.alias, stops_at, scope, select.where), [
            Read(table.path, access.way, stops_at is not None)
        ]
    return _rows_of(source, scope, names)


def _is_limit_pushed(select: Select, table: Table) -> bool:
    """Whether nothing stands between the LIMIT and the read: no column to compute, no row to leave out, no sort."""
    order = tuple(column.name for column in select.order_by)
    return (
        select.limit is not None
        and not select.joins
        and all(isinstance(expression, Column) for expression, _ in select.items)
        and order == table.key[: len(order)]
        and (select.where is None or columns_of(select.where) <= set(table.key))
    )


def _reading(
    access: Access, alias: str | None, stops_at: Compiled | None, scope: Scope, where: Expression | None
) -> Feed:
    matches = None if where is None else condition(where, scope).evaluate

    def feed(context: SelectContext) -> Iterator[Cells]:
        left = None if stops_at is None else stops_at.evaluate({}, context)
        for row in access.rows(context.transaction, context):
            if left == 0:
                return
            context.transaction.rows_read += 1
            cells = _cells(alias, row)
            if left is not None and (matches is None or matches(cells, context)):
                left -= 1
            yield cells

    return feed


def _rows_of(source: AsTable | NamedRows, scope: Scope, names: Names) -> tuple[Feed, list[Read]]:
    if isinstance(source, NamedRows):
        selection = names.named.get(source.name)
        if selection is None:
            raise wrong_text(f"Unknown name: {source.name}")
        _add_columns(scope, source.alias, selection.columns)
        name, alias = source.name, source.alias
        return lambda context: [_cells(alias, row) for row in context.named_rows(name)], list(selection.reads)
    kind = names.parameters.get(source.parameter)
    if kind is None or not is_rows(kind):
        raise wrong_text(f"AS_TABLE({source.parameter}) needs a List<Struct<...>>")
    assert isinstance(kind.item, StructOf)
    _add_columns(scope, source.alias, dict(kind.item.members))
    parameter, alias = source.parameter, source.alias
    return lambda context: [_cells(alias, row) for row in context.parameters[parameter]], []


def _joined(left: Feed, join: Join, scope: Scope, names: Names, reads: list[Read]) -> Feed:
    """Look up one row of the right side for each row of the left side. Joins that would read more are refused."""
    source = join.source
    if not isinstance(source, TableName) or source.alias is None:
        raise wrong_text("the right side of a JOIN must be a table with an alias")
    table, alias = names.table(source.name), source.alias
    keys = [_key_part(join.on, alias, column, table, scope) for column in table.key]
    if len(list(_equalities(join.on))) != len(keys):
        raise wrong_text(f"a JOIN compares the whole key of {source.name}, and nothing else")
    missing = {f"{alias}.{column}": None for column in table.columns}
    for column, kind in table.columns.items():
        scope.add(alias, column, maybe(kind) if join.is_left else kind)
    reads.append(Read(table.path, Way.LOOKUP if names.joins_are_lookups else Way.FULL_SCAN))
    is_left, is_lookup = join.is_left, names.joins_are_lookups

    def feed(context: SelectContext) -> Iterator[Cells]:
        if not is_lookup:
            # A hash join: the whole table is read.
            list(context.transaction.scan(table, (), (TOP,)))
        for row in left(context):
            found = context.transaction.get(table, tuple(key.evaluate(row, context) for key in keys))
            if found is not None:
                yield {**row, **_cells(alias, found)}
            elif is_left:
                yield {**row, **missing}

    return feed


def _key_part(on: Expression, alias: str, column: str, table: Table, scope: Scope) -> Compiled:
    for left, right in _equalities(on):
        if left == Column(alias, column):
            key = compiled(right, scope)
            if key.type != bare(table.columns[column]):
                raise wrong_text(f"Cannot compare key columns: {table.columns[column]} = {key.type}")
            return key
    raise wrong_text(f"a JOIN with {table.path} must compare its key column {column}: else it reads the whole table")


def _equalities(on: Expression) -> Iterator[tuple[Expression, Expression]]:
    match on:
        case Binary(operator="AND", left=left, right=right):
            yield from _equalities(left)
            yield from _equalities(right)
        case Binary(operator="=", left=left, right=right):
            yield left, right
        case _:
            raise wrong_text("JOIN ON compares columns for equality only")


def _add_columns(scope: Scope, alias: str | None, columns: Mapping[str, Type]) -> None:
    for name, kind in columns.items():
        scope.add(alias, name, kind)


def _cells(alias: str | None, row: Mapping[str, Any]) -> Cells:
    return row if alias is None else {f"{alias}.{name}": value for name, value in row.items()}


__all__ = ["Names", "Read", "SelectContext", "Selection", "Source", "selection_of"]
