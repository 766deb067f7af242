"""COUNT, COUNT_IF and MIN, over all rows or by group."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.ydb_endpoint.errors import wrong_text
from tests.ydb_endpoint.runtime.expressions import Cells, Compiled, ExpressionContext, Scope, compiled, condition
from tests.ydb_endpoint.runtime.functions import AGGREGATES
from tests.ydb_endpoint.yql.syntax import Call, Column, Select, Star
from tests.ydb_endpoint.yql.types import UINT64, Type, maybe


@dataclass
class Aggregate:
    name: str
    type: Type
    argument: Compiled | None

    def over(self, rows: list[Cells], context: ExpressionContext) -> Any:
        if self.argument is None:
            return len(rows)
        values = [self.argument.evaluate(row, context) for row in rows]
        if self.name == "COUNT_IF":
            return sum(value is True for value in values)
        return min((value for value in values if value is not None), default=None)


@dataclass
class Aggregation:
    # Each column of the result is a column of GROUP BY or an aggregate.
    items: dict[str, tuple[str, Type] | Aggregate]
    group_by: list[str]

    @property
    def result_types(self) -> dict[str, Type]:
        return {name: item.type if isinstance(item, Aggregate) else item[1] for name, item in self.items.items()}

    def rows(self, rows: Iterable[Cells], context: ExpressionContext) -> list[dict[str, Any]]:
        groups: dict[tuple[Any, ...], list[Cells]] = {} if self.group_by else {(): []}
        for row in rows:
            groups.setdefault(tuple(row[cell] for cell in self.group_by), []).append(row)
        return [
            {
                name: item.over(group, context) if isinstance(item, Aggregate) else group[0][item[0]]
                for name, item in self.items.items()
            }
            for group in groups.values()
        ]


def aggregation_of(select: Select, scope: Scope) -> Aggregation | None:
    """None: the SELECT has no aggregates."""
    calls = [expression for expression, _ in select.items if isinstance(expression, Call)]
    if not any(call.name in AGGREGATES for call in calls):
        return None
    if select.order_by or select.limit:
        raise wrong_text("the endpoint neither sorts nor limits aggregates")
    items: dict[str, tuple[str, Type] | Aggregate] = {}
    for expression, alias in select.items:
        if isinstance(expression, Column) and expression in select.group_by:
            items[alias or expression.name] = scope.find(expression)
        elif isinstance(expression, Call) and expression.name in AGGREGATES and alias:
            items[alias] = _aggregate(expression, scope)
        else:
            raise wrong_text("a SELECT with aggregates can have aggregates and the columns of GROUP BY only")
    return Aggregation(items, [scope.find(column)[0] for column in select.group_by])


def _aggregate(call: Call, scope: Scope) -> Aggregate:
    [argument] = call.arguments
    match call.name:
        case "COUNT" if isinstance(argument, Star):
            return Aggregate("COUNT", UINT64, None)
        case "COUNT_IF":
            return Aggregate("COUNT_IF", UINT64, condition(argument, scope))
        case "MIN":
            smallest = compiled(argument, scope)
            return Aggregate("MIN", maybe(smallest.type), smallest)
    raise wrong_text(f"the endpoint does not know this use of {call.name}")
