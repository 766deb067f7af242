"""The parts of a store URL that every backend reads alike: its options (`?schema=timers`), and its password."""

import difflib
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote_plus

from clepsydra.store.errors import WrongUrl

_HIDDEN = "***"

_SQLITE_FILE = "sqlite:///"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AFTER_PLACE = re.compile(r"[/?#]")
# The port of one host, or of the first of a list.
_PORTS = re.compile(r":[0-9]*(,.*)?")

# What names a secret, and what looks so and names a file.
_SECRET = re.compile(r"pass|pwd|secret|token|cred|key", re.IGNORECASE)
_FILES = frozenset({"passfile", "sslkey", "key_file", "token_file"})

# Where an option begins; and a setting in a connection string that is no URL at all.
_NEXT_OPTION = re.compile(rf"(?<=[&;])(?=[^&;=]*=|[^&;:]*(?:{_SECRET.pattern})[^&;:]*:)", re.IGNORECASE)
_OPTION = re.compile(r"(?P<name>[^=:]*)(?P<sign>[=:])(?P<value>.*?)(?P<end>[&;]?)", re.DOTALL)
_SETTING = re.compile(r"(?P<name>[\w-]+)(?P<sign>\s*=\s*)(?P<value>'(?:[^'\\]|\\.)*'?|[^\s&]+)")


def without_password(url: str) -> str:
    """A store URL as it may be shown to anyone: without the password, and without options that are secret.

    A URL that is written wrongly is shown as well, in the message that refuses it. So whatever may be a password is
    hidden, and rather too much than too little.

    >>> without_password("postgresql://ada:secret@db/clepsydra?sslpassword=hush&schema=timers")
    'postgresql://ada:***@db/clepsydra?sslpassword=***&schema=timers'
    >>> without_password("postgresql:ada:se/cr?et@db"), without_password("host=db password='a b'")
    ('postgresql:***@db', 'host=db password=***')
    """
    place, mark, query = _hide_user_password(url).partition("?")
    if not mark:
        return _SETTING.sub(_hide_setting, place)
    options = [_hide_option(option) for option in _NEXT_OPTION.split(query)]
    return f"{_SETTING.sub(_hide_setting, place)}?{''.join(options)}"


def _hide_user_password(url: str) -> str:
    """Hide what stands between a user and the last @, or what stands where a port would and is none."""
    if url.startswith(_SQLITE_FILE):
        return url
    scheme = _SCHEME.match(url)
    start = scheme.end() if scheme else 0
    at, colon = url.rfind("@"), _colon_after(url, start)
    if colon < at:
        return url[: colon + 1] + _HIDDEN + url[at:] if colon >= 0 else url
    place_ends = _AFTER_PLACE.search(url, start)
    end = place_ends.start() if place_ends else len(url)
    if at < 0 and scheme and start <= colon < end and not _PORTS.fullmatch(url, colon, end):
        return url[: colon + 1] + _HIDDEN + url[end:]
    return url


def _colon_after(url: str, start: int) -> int:
    """The first colon that is not part of an IPv6 address."""
    return url.find(":", url.find("]", start) if url.startswith("[", start) else start)


def _hide_option(option: str) -> str:
    """An option with the sign that ends it, if any."""
    found = _OPTION.fullmatch(option)
    if found is None or not _is_secret(unquote_plus(found["name"])):
        return option
    return f"{found['name']}{found['sign']}{_HIDDEN}{found['end']}"


def _hide_setting(setting: re.Match[str]) -> str:
    return f"{setting['name']}{setting['sign']}{_HIDDEN}" if _is_secret(setting["name"]) else setting[0]


def _is_secret(name: str) -> bool:
    return bool(_SECRET.search(name)) and name.lower() not in _FILES


class UrlOptions:
    """Options are taken out one by one. Unknown ones, and values out of range, are refused.

    `shown` is the URL as it may be shown to anyone.

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
            if ";" in value and without_password(value) != value:
                # Another message would quote the value, with what follows it.
                raise WrongUrl(f"the store URL {shown!r} has a semicolon between its options: write & instead")
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
        except ValueError:
            # Its text would quote an option, which may be a password.
            raise WrongUrl(f"the store URL {self._shown!r} has options that are not name=value&name=value") from None
