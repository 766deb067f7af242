"""The options of a store URL: `?schema=timers&pool_size=20`. What is unknown or out of range is refused."""

import difflib
from collections.abc import Iterable
from urllib.parse import parse_qsl

from clepsydra.store.errors import WrongUrl


class UrlOptions:
    """Options are taken out one by one; `shown` is the URL as it may be shown to anyone.

    >>> options = UrlOptions("pool_size=20&tracing=on", "db://", known=["pool_size", "tracing"])
    >>> options.number("pool_size", 10, 1, 1_000), options.flag("tracing"), options.text("schema")
    (20, True, None)
    """

    def __init__(self, query: str, shown: str, known: Iterable[str]) -> None:
        self._shown = shown
        self._values: dict[str, str] = {}
        known = list(known)
        for name, value in self._pairs(query):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                meant = f"did you mean {near[0]}?" if near else f"it can be {', '.join(known)}"
                raise WrongUrl(f"the store URL {shown!r} has the unknown option {name!r}: {meant}")
            if name in self._values:
                raise WrongUrl(f"the store URL {shown!r} has the option {name!r} twice")
            self._values[name] = value

    def text(self, name: str) -> str | None:
        return self._values.pop(name, None)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        text = self._values.pop(name, str(default))
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise WrongUrl(
                f"the store URL {self._shown!r} has {name}={text}: it must be a whole number from {least} to {most}"
            )
        return int(text)

    def flag(self, name: str) -> bool:
        value = self._values.pop(name, "off")
        if value not in ("on", "off"):
            raise WrongUrl(f"the store URL {self._shown!r} has {name}={value}: it can be on or off")
        return value == "on"

    def remaining(self) -> dict[str, str]:
        """Those that were not taken."""
        return dict(self._values)

    def _pairs(self, query: str) -> list[tuple[str, str]]:
        try:
            return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        except ValueError as error:
            raise WrongUrl(
                f"the store URL {self._shown!r} has options that are not name=value&name=value: {error}"
            ) from error
