"""Parses statements: the subset of YQL that the project uses. Everything else is refused."""

from typing import Any

from tests.ydb_endpoint.errors import Refused, Status, wrong_text
from tests.ydb_endpoint.yql.expression_parser import ExpressionParser
from tests.ydb_endpoint.yql.lexer import TEXT_BYTES
from tests.ydb_endpoint.yql.syntax import (
    AsTable,
    Column,
    CreateTable,
    Declare,
    DropTable,
    Expression,
    Join,
    Named,
    NamedRows,
    Pragma,
    Select,
    Source,
    Statement,
    TableName,
    Write,
)
from tests.ydb_endpoint.yql.token_reader import TokenReader
from tests.ydb_endpoint.yql.types import Primitive

_WRITES = ("UPSERT", "REPLACE", "INSERT")
_SWITCHES = ("ENABLED", "DISABLED")


def parse(text: str) -> list[Statement]:
    if len(text.encode()) > TEXT_BYTES:
        raise Refused(Status.BAD_REQUEST, f"the text is longer than {TEXT_BYTES} bytes")
    return _Parser(TokenReader(text)).statements()


class _Parser:
    def __init__(self, reader: TokenReader) -> None:
        self._reader = reader
        self._expressions = ExpressionParser(reader)

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        while self._reader.next.kind != "end":
            found.append(self._statement())
            self._reader.expect_symbol(";")
        return found

    def _statement(self) -> Statement:
        reader = self._reader
        if reader.next.kind == "parameter":
            name = reader.parameter()
            reader.expect_symbol("=")
            reader.expect_symbol("(")
            select = self._select()
            reader.expect_symbol(")")
            return Named(name, select)
        if reader.accept_keywords("PRAGMA"):
            return self._pragma()
        if reader.accept_keywords("DECLARE"):
            name = reader.parameter()
            reader.expect_keywords("AS")
            return Declare(name, reader.type())
        if reader.has_keywords("SELECT"):
            return self._select()
        for verb in _WRITES:
            if reader.accept_keywords(verb, "INTO"):
                return Write(verb, reader.name(), self._select())
        if reader.accept_keywords("DELETE", "FROM"):
            table = reader.name()
            # DELETE … WHERE would read the rows that it deletes.
            reader.expect_keywords("ON")
            return Write("DELETE", table, self._select())
        if reader.accept_keywords("CREATE", "TABLE"):
            return self._create_table()
        if reader.accept_keywords("DROP", "TABLE"):
            return DropTable(reader.name())
        raise wrong_text(f"the endpoint does not know the statement that begins with {reader.next.text!r}")

    def _pragma(self) -> Pragma:
        reader = self._reader
        name = reader.name()
        if reader.accept_symbol("."):
            name = f"{name}.{reader.name()}"
        if reader.accept_symbol("="):
            return Pragma(name, reader.text())
        reader.expect_symbol("(")
        value = reader.text()
        reader.expect_symbol(")")
        return Pragma(name, value)

    def _select(self) -> Select:
        reader = self._reader
        reader.expect_keywords("SELECT")
        items = reader.listed(self._item)
        if not reader.accept_keywords("FROM"):
            return Select(tuple(items))
        source = self._source()
        joins = self._joins()
        where = self._expressions.expression() if reader.accept_keywords("WHERE") else None
        group_by = reader.listed(self._column) if reader.accept_keywords("GROUP", "BY") else []
        order_by = reader.listed(self._column) if reader.accept_keywords("ORDER", "BY") else []
        limit = self._expressions.expression() if reader.accept_keywords("LIMIT") else None
        return Select(tuple(items), source, tuple(joins), where, tuple(group_by), tuple(order_by), limit)

    def _item(self) -> tuple[Expression, str | None]:
        expression = self._expressions.expression()
        return expression, self._reader.name() if self._reader.accept_keywords("AS") else None

    def _column(self) -> Column:
        return Column(None, self._reader.name())

    def _source(self) -> Source:
        reader = self._reader
        if reader.next.kind == "parameter":
            return NamedRows(reader.parameter(), self._alias())
        if reader.accept_keywords("AS_TABLE"):
            reader.expect_symbol("(")
            parameter = reader.parameter()
            reader.expect_symbol(")")
            return AsTable(parameter, self._alias())
        return TableName(reader.name(), self._alias())

    def _alias(self) -> str | None:
        return self._reader.name() if self._reader.accept_keywords("AS") else None

    def _joins(self) -> list[Join]:
        joins = []
        while self._reader.has_keywords("LEFT", "JOIN") or self._reader.has_keywords("INNER", "JOIN"):
            is_left = self._reader.take().is_keyword("LEFT")
            self._reader.expect_keywords("JOIN")
            source = self._source()
            self._reader.expect_keywords("ON")
            joins.append(Join(is_left, source, self._expressions.expression()))
        return joins

    # DDL.

    def _create_table(self) -> CreateTable:
        reader = self._reader
        if_not_exists = reader.accept_keywords("IF", "NOT", "EXISTS")
        name = reader.name()
        reader.expect_symbol("(")
        columns: dict[str, tuple[Primitive, bool]] = {}
        while not reader.accept_keywords("PRIMARY", "KEY"):
            column = reader.name()
            kind = reader.type()
            if not isinstance(kind, Primitive):
                raise wrong_text(f"column {column} cannot have the type {kind}")
            columns[column] = kind, reader.accept_keywords("NOT", "NULL")
            reader.expect_symbol(",")
        reader.expect_symbol("(")
        key = reader.listed(reader.name)
        reader.expect_symbol(")")
        reader.expect_symbol(")")
        return CreateTable(name, if_not_exists, columns, tuple(key), self._settings())

    def _settings(self) -> dict[str, Any]:
        if not self._reader.accept_keywords("WITH"):
            return {}
        self._reader.expect_symbol("(")
        settings = dict(self._reader.listed(self._setting))
        self._reader.expect_symbol(")")
        return settings

    def _setting(self) -> tuple[str, Any]:
        name = self._reader.name().upper()
        self._reader.expect_symbol("=")
        return name, self._setting_value()

    def _setting_value(self) -> Any:
        reader = self._reader
        if reader.accept_symbol("("):
            keys = reader.listed(self._number)
            reader.expect_symbol(")")
            return keys
        for switch in _SWITCHES:
            if reader.accept_keywords(switch):
                return switch == "ENABLED"
        return self._number()

    def _number(self) -> int:
        if self._reader.next.kind != "number":
            self._reader.refuse("a number")
        return int(self._reader.take().text)
