"""Splits a YQL text into tokens."""

import re
from typing import NamedTuple

from tests.ydb_endpoint.errors import wrong_text

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
    | (?P<parameter>\$[A-Za-z_][A-Za-z0-9_]*)
    | (?P<text>"(?:[^"\\]|\\.)*"u?)
    | (?P<number>[0-9]+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*|`[^`]+`)
    | (?P<symbol>::|<=|>=|<>|!=|==|[-+*/%().,;:<>=?{}\[\]|])
    """,
    re.VERBOSE,
)

# YDB's limit on a query's text.
TEXT_BYTES = 10 * 1024


class Token(NamedTuple):
    kind: str
    text: str
    position: int

    def is_keyword(self, keyword: str) -> bool:
        return self.kind == "name" and self.text.upper() == keyword


END = Token("end", "", -1)


def tokens(text: str) -> list[Token]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise wrong_text(f"unexpected character {text[position]!r} at {position}")
        if match.lastgroup != "space":
            assert match.lastgroup is not None
            found.append(Token(match.lastgroup, match[0], position))
        position = match.end()
    return found
