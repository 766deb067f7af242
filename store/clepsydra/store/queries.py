"""Named statements from a file: `-- name: x` starts one, and it ends where the next begins.

Queries are read by people who tune databases, so they stand in files of their own language beside the store that uses
them, and none is glued together from strings.
"""

import re
from collections.abc import Iterator
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)


class Queries:
    """
    >>> queries = Queries("-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n")
    >>> queries["two"]
    'SELECT 2;'
    """

    def __init__(self, text: str) -> None:
        parts = _NAME.split(text)
        self._statements: dict[str, str] = dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))

    @classmethod
    def of_package(cls, package: str, file: str) -> "Queries":
        return cls((resources.files(package) / file).read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> str:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)
