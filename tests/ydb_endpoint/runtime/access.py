"""How a table is read: by its whole key, by a range of keys, or completely.

The WHERE clause decides, as it does for a planner: it fixes the first columns of the key, and bounds the next one. The
whole clause is then checked for every row, so a range may be wider than needed but not narrower.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.ydb_endpoint.runtime.expressions import Compiled, ExpressionContext, Scope, compiled
from tests.ydb_endpoint.storage import TOP, Key, Row, Table, Transaction
from tests.ydb_endpoint.yql.syntax import Binary, Column, Expression, Literal, Parameter, Tuple


class Way(Enum):
    """As YDB's query plans call it."""

    LOOKUP = "Lookup"
    SCAN = "Scan"
    FULL_SCAN = "FullScan"


@dataclass
class Access:
    table: Table
    fixed: list[Compiled] = field(default_factory=list)
    lower: Compiled | None = None
    upper: Compiled | None = None

    @property
    def way(self) -> Way:
        if len(self.fixed) == len(self.table.key):
            return Way.LOOKUP
        return Way.SCAN if self.fixed or self.lower or self.upper else Way.FULL_SCAN

    def rows(self, transaction: Transaction, context: ExpressionContext) -> Iterator[Row]:
        prefix = tuple(part.evaluate({}, context) for part in self.fixed)
        if self.way is Way.LOOKUP:
            row = transaction.get(self.table, prefix)
            return iter(() if row is None else (row,))
        return transaction.scan(self.table, prefix + self._end(self.lower, context), self._high(prefix, context))

    def _high(self, prefix: Key, context: ExpressionContext) -> Key:
        return (*prefix, *self._end(self.upper, context), TOP)

    @staticmethod
    def _end(bound: Compiled | None, context: ExpressionContext) -> Key:
        return () if bound is None else (bound.evaluate({}, context),)


def access_to(table: Table, where: Expression | None, scope: Scope) -> Access:
    found = Access(table)
    terms = list(_conjuncts(where)) if where is not None else []
    for column in table.key:
        fixing = [right for left, sign, right in map(_sides, terms) if sign == "=" and left == column]
        if not fixing:
            break
        found.fixed.append(compiled(fixing[0], scope))
    if len(found.fixed) < len(table.key):
        _bound(found, table.key[len(found.fixed)], terms, scope)
    return found


def _bound(found: Access, column: str, terms: list[Expression], scope: Scope) -> None:
    for left, sign, right in map(_sides, terms):
        if left == column and sign in (">", ">="):
            found.lower = found.lower or compiled(right, scope)
        elif left == column and sign in ("<", "<="):
            found.upper = found.upper or compiled(right, scope)


def _sides(term: Expression) -> tuple[str | None, str, Any]:
    """A column, a comparison, and the value it is compared with. A comparison of tuples bounds the first column."""
    match term:
        case Binary(operator=sign, left=Column(name=name), right=Parameter() | Literal() as right):
            return name, sign, right
        case Binary(operator=">" | ">=" as sign, left=Tuple(items=lefts), right=Tuple(items=rights)):
            first = lefts[0]
            return (first.name if isinstance(first, Column) else None), ">=", rights[0]
    return None, "", None


def columns_of(expression: Expression) -> set[str]:
    """The columns that a condition compares. A condition of another form has a column that no table has."""
    match expression:
        case Binary(left=left, right=right):
            return columns_of(left) | columns_of(right)
        case Tuple(items=items):
            return {name for item in items for name in columns_of(item)}
        case Column(name=name):
            return {name}
        case Parameter() | Literal():
            return set()
    return {""}


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Binary) and expression.operator == "AND":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression
