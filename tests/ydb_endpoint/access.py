"""How a table is read: by its whole key, by a range of keys, or from end to end.

It is derived from the WHERE clause as a planner would: the first columns of the key that are fixed, and bounds on the
next one. The clause itself is checked for every row afterwards, so a range may be wider than needed, never narrower.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.ydb_endpoint.expressions import Compiled, Run, Scope, compiled
from tests.ydb_endpoint.storage import TOP, Key, Row, Table, Transaction
from tests.ydb_endpoint.syntax import Binary, Column, Expression, Literal, Parameter, Tuple


class Way(Enum):
    """As YDB's query plans name it."""

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

    def rows(self, transaction: Transaction, run: Run) -> Iterator[Row]:
        prefix = tuple(part.evaluate({}, run) for part in self.fixed)
        if self.way is Way.LOOKUP:
            row = transaction.get(self.table, prefix)
            return iter(() if row is None else (row,))
        return transaction.scan(self.table, prefix + self._end(self.lower, run), self._high(prefix, run))

    def _high(self, prefix: Key, run: Run) -> Key:
        return (*prefix, *self._end(self.upper, run), TOP)

    @staticmethod
    def _end(bound: Compiled | None, run: Run) -> Key:
        return () if bound is None else (bound.evaluate({}, run),)


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
    """A column, a comparison, and what it is compared with; of tuples, the first of each."""
    match term:
        case Binary(operator=sign, left=Column(name=name), right=Parameter() | Literal() as right):
            return name, sign, right
        case Binary(operator=">" | ">=" as sign, left=Tuple(items=lefts), right=Tuple(items=rights)):
            first = lefts[0]
            return (first.name if isinstance(first, Column) else None), ">=", rights[0]
    return None, "", None


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Binary) and expression.operator == "AND":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression
