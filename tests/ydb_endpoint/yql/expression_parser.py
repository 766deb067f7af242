"""Parses expressions by precedence: OR, AND, NOT, comparison, subtraction, primary."""

from tests.ydb_endpoint.errors import wrong_text
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
from tests.ydb_endpoint.yql.token_reader import TokenReader, unquoted
from tests.ydb_endpoint.yql.types import BOOL, INT32, STRING, UTF8

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# Functions whose last argument is a type.
_TYPE_ARGUMENT = {"FROMBYTES": 1}


class ExpressionParser:
    def __init__(self, reader: TokenReader) -> None:
        self._reader = reader

    def expression(self) -> Expression:
        left = self._conjunction()
        while self._reader.accept_keywords("OR"):
            left = Binary("OR", left, self._conjunction())
        return left

    def _conjunction(self) -> Expression:
        left = self._negation()
        while self._reader.accept_keywords("AND"):
            left = Binary("AND", left, self._negation())
        return left

    def _negation(self) -> Expression:
        return Not(self._negation()) if self._reader.accept_keywords("NOT") else self._comparison()

    def _comparison(self) -> Expression:
        left = self._difference()
        if self._reader.accept_keywords("IS"):
            negated = self._reader.accept_keywords("NOT")
            self._reader.expect_keywords("NULL")
            return IsNull(left, negated)
        for operator in _COMPARISONS:
            if self._reader.accept_symbol(operator):
                return Binary(operator, left, self._difference())
        return left

    def _difference(self) -> Expression:
        left = self._primary()
        while self._reader.accept_symbol("-"):
            left = Binary("-", left, self._primary())
        return left

    def _primary(self) -> Expression:
        reader = self._reader
        if reader.accept_symbol("("):
            items = reader.listed(self.expression)
            reader.expect_symbol(")")
            return items[0] if len(items) == 1 else Tuple(tuple(items))
        kind = reader.next.kind
        if kind == "parameter":
            return Parameter(reader.take().text)
        if kind == "number":
            return Literal(INT32, int(reader.take().text))
        if kind == "text":
            return _text(reader.take().text)
        if kind != "name":
            reader.refuse("an expression")
        return self._named()

    def _named(self) -> Expression:
        reader = self._reader
        if reader.accept_keywords("TRUE"):
            return Literal(BOOL, True)
        if reader.accept_keywords("FALSE"):
            return Literal(BOOL, False)
        if reader.accept_keywords("CASE"):
            return self._case()
        if reader.has_keywords("CAST"):
            return self._cast()
        name = reader.name()
        if reader.accept_symbol("::"):
            name = f"{name}::{reader.name()}"
        if reader.accept_symbol("("):
            return self._call(name.upper())
        if reader.accept_symbol("."):
            return Column(name, reader.name())
        return Column(None, name)

    def _call(self, name: str) -> Expression:
        reader = self._reader
        arguments: list[Expression] = []
        if reader.accept_symbol("*"):
            arguments.append(Star())
        elif not reader.has_symbol(")"):
            arguments.append(self._argument(name, 0))
            while reader.accept_symbol(","):
                arguments.append(self._argument(name, len(arguments)))
        reader.expect_symbol(")")
        return Call(name, tuple(arguments))

    def _argument(self, name: str, place: int) -> Expression:
        return TypeName(self._reader.type()) if _TYPE_ARGUMENT.get(name) == place else self.expression()

    def _cast(self) -> Expression:
        reader = self._reader
        reader.expect_keywords("CAST")
        reader.expect_symbol("(")
        expression = self.expression()
        reader.expect_keywords("AS")
        kind = reader.type()
        reader.expect_symbol(")")
        return Cast(expression, kind)

    def _case(self) -> Expression:
        reader = self._reader
        whens = []
        while reader.accept_keywords("WHEN"):
            condition = self.expression()
            reader.expect_keywords("THEN")
            whens.append((condition, self.expression()))
        reader.expect_keywords("ELSE")
        otherwise = self.expression()
        reader.expect_keywords("END")
        if not whens:
            raise wrong_text("a CASE without WHEN")
        return Case(tuple(whens), otherwise)


def _text(literal: str) -> Literal:
    inner = unquoted(literal)
    return Literal(UTF8, inner) if literal.endswith("u") else Literal(STRING, inner.encode())
