"""Named statements from a file: `-- name: x` starts one, and it ends where the next begins, or the comment on the next.

Queries are read by people who tune databases, so they stand in files of their own language beside the store that uses
them, and none is glued together from strings.
"""

import re
from collections.abc import Iterator
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)
_COMMENT_ON_NEXT = re.compile(r"\n(--[^\n]*\n)+\Z")


class Queries:
    """
    >>> queries = Queries("-- name: one\\nSELECT 1;\\n\\n-- The second.\\n-- name: two\\nSELECT 2;\\n")
    >>> queries["one"], queries["two"]
    ('SELECT 1;', 'SELECT 2;')
    """

    def __init__(self, text: str) -> None:
        _, *parts = _NAME.split(text)
        texts = (_COMMENT_ON_NEXT.sub("", part).strip() for part in parts[1::2])
        self._statements: dict[str, str] = dict(zip(parts[::2], texts, strict=True))

    @classmethod
    def of_package(cls, package: str, file: str) -> "Queries":
        return cls((resources.files(package) / file).read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> str:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)
