"""Reads tokens one by one, for the parsers."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from tests.ydb_endpoint.errors import wrong_text
from tests.ydb_endpoint.yql.lexer import END, Token, tokens
from tests.ydb_endpoint.yql.types import ListOf, Maybe, Type, primitive, struct_of

Item = TypeVar("Item")


class TokenReader:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._place = 0

    @property
    def next(self) -> Token:
        return self.peek(0)

    def peek(self, ahead: int) -> Token:
        place = self._place + ahead
        return self._tokens[place] if place < len(self._tokens) else END

    def take(self) -> Token:
        token = self.next
        self._place += 1
        return token

    def refuse(self, wanted: str) -> NoReturn:
        token = self.next
        shown = "the end" if token is END else f"{token.text!r} at {token.position}"
        raise wrong_text(f"expected {wanted}, found {shown}")

    # Keywords and symbols.

    def has_keywords(self, *keywords: str) -> bool:
        return all(self.peek(ahead).is_keyword(keyword) for ahead, keyword in enumerate(keywords))

    def accept_keywords(self, *keywords: str) -> bool:
        if not self.has_keywords(*keywords):
            return False
        self._place += len(keywords)
        return True

    def expect_keywords(self, *keywords: str) -> None:
        for keyword in keywords:
            if not self.accept_keywords(keyword):
                self.refuse(keyword)

    def has_symbol(self, symbol: str) -> bool:
        return self.next.kind == "symbol" and self.next.text == symbol

    def accept_symbol(self, symbol: str) -> bool:
        if not self.has_symbol(symbol):
            return False
        self._place += 1
        return True

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            self.refuse(repr(symbol))

    # Names, parameters, literals and types.

    def name(self) -> str:
        if self.next.kind != "name":
            self.refuse("a name")
        return self.take().text.strip("`")

    def parameter(self) -> str:
        if self.next.kind != "parameter":
            self.refuse("a parameter")
        return self.take().text

    def text(self) -> str:
        if self.next.kind != "text":
            self.refuse("a text")
        return unquoted(self.take().text)

    def listed(self, item: Callable[[], Item]) -> list[Item]:
        """One or more items, separated by commas."""
        items = [item()]
        while self.accept_symbol(","):
            items.append(item())
        return items

    def type(self) -> Type:
        kind = self._plain_type()
        return Maybe(kind) if self.accept_symbol("?") else kind

    def _plain_type(self) -> Type:
        name = self.name()
        if not self.has_symbol("<"):
            return primitive(name)
        self.expect_symbol("<")
        kind: Type
        if name == "Struct":
            members = self.listed(self._member)
            kind = struct_of(dict(members))
        elif name == "List":
            kind = ListOf(self.type())
        elif name == "Optional":
            kind = Maybe(self.type())
        else:
            raise wrong_text(f"unknown type {name}<...>")
        self.expect_symbol(">")
        return kind

    def _member(self) -> tuple[str, Type]:
        name = self.name()
        self.expect_symbol(":")
        return name, self.type()


def unquoted(literal: str) -> str:
    inner = literal.removesuffix("u")[1:-1]
    if "\\" in inner:
        raise wrong_text(f"the endpoint knows no escapes: {literal}")
    return inner
