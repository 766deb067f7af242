"""Expressions with their types, compiled once and evaluated for each row."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from tests.ydb_endpoint.errors import wrong_text
from tests.ydb_endpoint.runtime.functions import AGGREGATES, CLOCK, CLOCK_TYPE, FUNCTIONS, VERSION
from tests.ydb_endpoint.yql.syntax import (
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    IsNull,
    Literal,
    Not,
    Parameter,
    Star,
    Tuple,
    TypeName,
)
from tests.ydb_endpoint.yql.types import BOOL, INTERVAL, STRING, TIMESTAMP, UTF8, Maybe, Type, bare, is_rows, maybe

Cells: TypeAlias = Mapping[str, Any]


class ExpressionContext(Protocol):
    """What an expression can use beside the row."""

    parameters: dict[str, Any]
    version: bytes

    def now_us(self) -> int: ...


class Compiled(NamedTuple):
    type: Type
    evaluate: Callable[[Cells, ExpressionContext], Any]
    # Whether the value is the same for every row.
    is_constant: bool = False


@dataclass
class Scope:
    """The columns that an expression can name, and the cell of a row that has the value of each."""

    # By qualifier and name.
    columns: dict[tuple[str | None, str], tuple[str, Type]] = field(default_factory=dict)
    parameters: Mapping[str, Type] = field(default_factory=dict)

    def add(self, alias: str | None, name: str, kind: Type) -> str:
        cell = name if alias is None else f"{alias}.{name}"
        self.columns[alias, name] = cell, kind
        return cell

    def find(self, column: Column) -> tuple[str, Type]:
        found = self.columns.get((column.qualifier, column.name))
        if found is None and column.qualifier is None:
            matches = [entry for (_, name), entry in self.columns.items() if name == column.name]
            if len(matches) > 1:
                raise wrong_text(f"Column {column.name} is in more than one source")
            found = matches[0] if matches else None
        if found is None:
            shown = column.name if column.qualifier is None else f"{column.qualifier}.{column.name}"
            raise wrong_text(f"Member not found: {shown}")
        return found


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compiled(expression: Expression, scope: Scope) -> Compiled:
    match expression:
        case Literal() | Parameter() | Column():
            return _plain(expression, scope)
        case Call(name=name, arguments=arguments):
            return _call(name, arguments, scope)
        case Cast():
            return _cast(expression, scope)
        case Binary(operator=sign, left=left, right=right):
            return _binary(sign, left, right, scope)
        case Not(expression=inner):
            return _not(compiled(inner, scope))
        case IsNull(expression=inner, negated=negated):
            return _is_null(compiled(inner, scope), negated=negated)
        case Case():
            return _case(expression, scope)
        case Tuple() | TypeName() | Star():
            raise wrong_text(f"{type(expression).__name__} is no value")


def _plain(expression: Literal | Parameter | Column, scope: Scope) -> Compiled:
    if isinstance(expression, Parameter):
        return _parameter(expression.name, scope)
    if isinstance(expression, Literal):
        value = expression.value
        return Compiled(expression.type, lambda _row, _context: value, is_constant=True)
    cell, kind = scope.find(expression)
    return Compiled(kind, lambda row, _context: row[cell])


def condition(expression: Expression, scope: Scope) -> Compiled:
    found = compiled(expression, scope)
    if bare(found.type) != BOOL:
        raise wrong_text(f"a condition must be Bool, not {found.type}")
    return found


def _parameter(name: str, scope: Scope) -> Compiled:
    kind = scope.parameters.get(name)
    if kind is None:
        raise wrong_text(f"Unknown name: {name}")
    if is_rows(kind):
        raise wrong_text(f"{name} is a list, and can be used with AS_TABLE only")
    return Compiled(kind, lambda _row, context: context.parameters[name], is_constant=True)


def _call(name: str, arguments: tuple[Expression, ...], scope: Scope) -> Compiled:
    if name == CLOCK and not arguments:
        return Compiled(CLOCK_TYPE, lambda _row, context: context.now_us(), is_constant=True)
    if name == VERSION and not arguments:
        return Compiled(STRING, lambda _row, context: context.version, is_constant=True)
    if name in AGGREGATES:
        raise wrong_text(f"{name} is an aggregate, and can only be a whole column of a SELECT")
    function = FUNCTIONS.get(name)
    if function is None:
        raise wrong_text(f"Unknown builtin: {name}")
    parts = [_argument(argument, scope) for argument in arguments]
    kind = function.result([part.type for part in parts])
    evaluates, apply = [part.evaluate for part in parts], function.apply

    def evaluate(row: Cells, context: ExpressionContext) -> Any:
        return apply(*(argument(row, context) for argument in evaluates))

    return Compiled(kind, evaluate, all(part.is_constant for part in parts))


def _argument(argument: Expression, scope: Scope) -> Compiled:
    if isinstance(argument, TypeName):
        return Compiled(argument.type, lambda _row, _context: None, is_constant=True)
    return compiled(argument, scope)


def _cast(expression: Cast, scope: Scope) -> Compiled:
    inner = compiled(expression.expression, scope)
    if (inner.type, expression.type) != (UTF8, STRING):
        raise wrong_text(f"the endpoint does not cast {inner.type} to {expression.type}")
    return Compiled(STRING, lambda row, context: inner.evaluate(row, context).encode(), inner.is_constant)


def _binary(sign: str, left: Expression, right: Expression, scope: Scope) -> Compiled:
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return _compare_tuples(sign, left, right, scope)
    first, second = compiled(left, scope), compiled(right, scope)
    is_constant = first.is_constant and second.is_constant
    types = f"{first.type} {sign} {second.type}"
    if sign == "-":
        if (first.type, second.type) != (TIMESTAMP, INTERVAL):
            raise wrong_text(f"Cannot subtract types: {types}")
        # A time before 1970 is no Timestamp: the result may be NULL.
        return Compiled(Maybe(TIMESTAMP), _subtracted(first, second), is_constant)
    kind = Maybe(BOOL) if isinstance(first.type, Maybe) or isinstance(second.type, Maybe) else BOOL
    if sign in ("AND", "OR"):
        if bare(first.type) != BOOL or bare(second.type) != BOOL:
            raise wrong_text(f"Expected Bool: {types}")
        return Compiled(kind, (_and if sign == "AND" else _or)(first, second), is_constant)
    if bare(first.type) != bare(second.type):
        raise wrong_text(f"Can't compare types: {types}")
    return Compiled(kind, _compared(_COMPARE[sign], first, second), is_constant)


def _subtracted(first: Compiled, second: Compiled) -> Callable[[Cells, ExpressionContext], Any]:
    def evaluate(row: Cells, context: ExpressionContext) -> int | None:
        difference: int = first.evaluate(row, context) - second.evaluate(row, context)
        return difference if difference >= 0 else None

    return evaluate


def _compared(
    compare: Callable[[Any, Any], bool], first: Compiled, second: Compiled
) -> Callable[[Cells, ExpressionContext], Any]:
    def evaluate(row: Cells, context: ExpressionContext) -> bool | None:
        left, right = first.evaluate(row, context), second.evaluate(row, context)
        return None if left is None or right is None else compare(left, right)

    return evaluate


def _and(first: Compiled, second: Compiled) -> Callable[[Cells, ExpressionContext], Any]:
    def evaluate(row: Cells, context: ExpressionContext) -> bool | None:
        left = first.evaluate(row, context)
        if left is False:
            return False
        right = second.evaluate(row, context)
        return False if right is False else None if left is None or right is None else True

    return evaluate


def _or(first: Compiled, second: Compiled) -> Callable[[Cells, ExpressionContext], Any]:
    def evaluate(row: Cells, context: ExpressionContext) -> bool | None:
        left = first.evaluate(row, context)
        if left is True:
            return True
        right = second.evaluate(row, context)
        return True if right is True else None if left is None or right is None else False

    return evaluate


def _not(inner: Compiled) -> Compiled:
    if bare(inner.type) != BOOL:
        raise wrong_text(f"NOT of {inner.type}")

    def evaluate(row: Cells, context: ExpressionContext) -> bool | None:
        value = inner.evaluate(row, context)
        return None if value is None else not value

    return Compiled(inner.type, evaluate, inner.is_constant)


def _is_null(inner: Compiled, *, negated: bool) -> Compiled:
    return Compiled(BOOL, lambda row, context: (inner.evaluate(row, context) is None) is not negated, inner.is_constant)


def _compare_tuples(sign: str, left: Tuple, right: Tuple, scope: Scope) -> Compiled:
    pairs = [(compiled(a, scope), compiled(b, scope)) for a, b in zip(left.items, right.items, strict=False)]
    if len(left.items) != len(right.items) or any(a.type != b.type or isinstance(a.type, Maybe) for a, b in pairs):
        raise wrong_text("Can't compare tuples of different types")
    compare = _COMPARE[sign]

    def evaluate(row: Cells, context: ExpressionContext) -> bool:
        return compare(
            tuple(a.evaluate(row, context) for a, _ in pairs), tuple(b.evaluate(row, context) for _, b in pairs)
        )

    return Compiled(BOOL, evaluate)


def _case(case: Case, scope: Scope) -> Compiled:
    whens = [(condition(when, scope), compiled(then, scope)) for when, then in case.whens]
    otherwise = compiled(case.otherwise, scope)
    kinds = {then.type for _, then in whens} | {otherwise.type}
    if len({bare(kind) for kind in kinds}) != 1:
        raise wrong_text(f"the branches of a CASE have different types: {', '.join(map(str, kinds))}")
    kind = otherwise.type if len(kinds) == 1 else maybe(otherwise.type)

    def evaluate(row: Cells, context: ExpressionContext) -> Any:
        for when, then in whens:
            if when.evaluate(row, context):
                return then.evaluate(row, context)
        return otherwise.evaluate(row, context)

    return Compiled(kind, evaluate)
