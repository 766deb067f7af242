"""Where an installation is, as its URL says it.

ydb://[user[:password]@]host[:port]/database?path=directory     without TLS
ydbs://[user[:password]@]host[:port]/database?path=directory    with TLS
"""

import difflib
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from clepsydra.store.errors import WrongUrl
from clepsydra.store.url import without_password

_PROTOCOLS = {"ydb": "grpc", "ydbs": "grpcs"}
_PORTS = {"ydb": 2136, "ydbs": 2135}
_DIRECTORY_DEFAULT = "clepsydra"
_DIRECTORY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_DATABASE = re.compile(r"(/[A-Za-z0-9._-]+)+")
_HOW = "write ydb://host:2136/database?path=directory"

_AUTHS = ("anonymous", "environment", "metadata")
_OPTIONS = ("path", "auth", "token_file", "key_file", "ca_file", "tracing", "sessions", "timeout_ms")


class Limits(NamedTuple):
    """How many, and how long: nothing is left to defaults that are endless."""

    # Sessions at once: calls under way, and then callers wait.
    sessions: int = 32
    # One request; the wait for a session has the same limit again.
    timeout_s: float = 5.0
    # No try is begun after this. The last one may wait for a session and then for its answer, and still ends within
    # `limits.CALL_RETRY_US`.
    retry_s: float = 8.0
    # A request of a tool, which may read whole tables.
    scan_timeout_s: float = 120.0
    connect_s: float = 10.0


class Location(NamedTuple):
    endpoint: str
    database: str
    # Below the database.
    directory: str
    secure: bool
    user: str | None = None
    password: str = ""
    auth: str | None = None
    token_file: str | None = None
    key_file: str | None = None
    ca_file: str | None = None
    tracing: bool = False
    limits: Limits = Limits()

    @property
    def path(self) -> str:
        """The directory's full path."""
        return f"{self.database}/{self.directory}"

    def __str__(self) -> str:
        """As it may be shown to anyone."""
        return f"{self.endpoint}{self.path}"


def locate(url: str) -> Location:
    """
    >>> str(locate("ydb://localhost:2136/local?path=timers"))
    'grpc://localhost:2136/local/timers'
    """
    shown = without_password(url)
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except ValueError as error:
        raise WrongUrl(f"the store URL {shown!r} cannot be read ({error}): {_HOW}") from error
    if not parts.hostname:
        raise WrongUrl(f"the store URL {shown!r} names no host: {_HOW}")
    if parts.fragment:
        raise WrongUrl(f"the store URL {shown!r} has a fragment, and a YDB URL takes none: {_HOW}")
    database = parts.path.rstrip("/")
    if not _DATABASE.fullmatch(database):
        raise WrongUrl(f"the store URL {shown!r} names no database: {_HOW}")
    options = _options(parts.query, shown)
    directory = options.get("path", _DIRECTORY_DEFAULT).strip("/")
    if not _DIRECTORY.fullmatch(directory):
        raise WrongUrl(
            f"the store URL {shown!r} has the path {directory!r}: "
            "a path is made of letters, digits and . _ - between slashes, and no part of it starts with a dot"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    location = Location(
        endpoint=f"{_PROTOCOLS[parts.scheme]}://{host}:{port}",
        database=database,
        directory=directory,
        secure=parts.scheme == "ydbs",
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
        auth=options.get("auth"),
        token_file=options.get("token_file"),
        key_file=options.get("key_file"),
        ca_file=options.get("ca_file"),
        tracing=_flag(options, "tracing", shown),
        limits=_limits(options, shown),
    )
    _refuse_contradictions(location, shown)
    return location


def _options(query: str, shown: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            near = difflib.get_close_matches(name, _OPTIONS, n=1)
            meant = f"did you mean {near[0]}?" if near else f"it can be {', '.join(_OPTIONS)}"
            raise WrongUrl(f"the store URL {shown!r} has the unknown option {name!r}: {meant}")
        if name in options:
            raise WrongUrl(f"the store URL {shown!r} has the option {name!r} twice")
        options[name] = value
    return options


def _flag(options: dict[str, str], name: str, shown: str) -> bool:
    value = options.get(name, "off")
    if value not in ("on", "off"):
        raise WrongUrl(f"the store URL {shown!r} has {name}={value}: it can be on or off")
    return value == "on"


def _limits(options: dict[str, str], shown: str) -> Limits:
    limits = Limits()
    if "sessions" in options:
        limits = limits._replace(sessions=_number(options, "sessions", 1, 1000, shown))
    if "timeout_ms" in options:
        limits = limits._replace(timeout_s=_number(options, "timeout_ms", 10, 5_000, shown) / 1000)
    return limits


def _number(options: dict[str, str], name: str, low: int, high: int, shown: str) -> int:
    text = options[name]
    if not text.isdecimal() or not low <= int(text) <= high:
        raise WrongUrl(f"the store URL {shown!r} has {name}={text}: it is a number from {low} to {high}")
    return int(text)


def _refuse_contradictions(location: Location, shown: str) -> None:
    if location.auth is not None and location.auth not in _AUTHS:
        raise WrongUrl(f"the store URL {shown!r} has auth={location.auth}: it can be {', '.join(_AUTHS)}")
    ways = {
        "a user": location.user,
        "auth": location.auth,
        "token_file": location.token_file,
        "key_file": location.key_file,
    }
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise WrongUrl(f"the store URL {shown!r} has {' and '.join(given)}: one way to authenticate is enough")
    if location.ca_file is not None and not location.secure:
        raise WrongUrl(f"the store URL {shown!r} has a ca_file but no TLS: write ydbs:// instead of ydb://")
