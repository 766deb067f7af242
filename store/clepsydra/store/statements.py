"""Named statements from files of their own language, beside the store that uses them.

People who tune databases read these files, so no statement is glued together from strings. In a file,

    -- name: x          starts a statement, which ends where the next one starts, or the comment on the next one
    -- fragment: y      starts a text that statements share
    -- include: y       stands for that text, indented as this line is
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import resources

_START = re.compile(r"^-- (name|fragment): (\w+)[ \t]*$", re.MULTILINE)
_INCLUDE = re.compile(r"^([ \t]*)-- include: (\w+)[ \t]*$", re.MULTILINE)
_COMMENT_ON_NEXT = re.compile(r"\n(--[^\n]*\n)+\Z")


class Statements:
    """
    >>> text = "-- fragment: key\\na = 1\\n\\n-- name: one\\nSELECT 1\\nWHERE\\n    -- include: key\\n;\\n"
    >>> Statements([text])["one"]
    'SELECT 1\\nWHERE\\n    a = 1\\n;'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        found: dict[str, dict[str, str]] = {"name": {}, "fragment": {}}
        for text in texts:
            _, *parts = _START.split(text)
            for kind, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
                assert name not in found[kind], f"the {kind} {name} is there twice"
                found[kind][name] = _COMMENT_ON_NEXT.sub("", body).strip()
        self._statements = {name: _included(text, found["fragment"]) for name, text in found["name"].items()}

    @classmethod
    def of_package(
        cls, package: str, extension: str, substitute: Callable[[str], str] = lambda text: text
    ) -> "Statements":
        """All statements of the folder `sql` in a package; `substitute` changes each file before it is read."""
        folder = resources.files(package) / "sql"
        files = sorted((file for file in folder.iterdir() if file.name.endswith(extension)), key=lambda file: file.name)
        return cls(substitute(file.read_text(encoding="utf-8")) for file in files)

    def __getitem__(self, name: str) -> str:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)


def _included(text: str, fragments: dict[str, str]) -> str:
    def fragment(found: re.Match[str]) -> str:
        indent, name = found.groups()
        return "\n".join(indent + line if line else line for line in _included(fragments[name], fragments).split("\n"))

    return _INCLUDE.sub(fragment, text)
