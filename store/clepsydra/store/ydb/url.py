"""Where an installation is, as its URL says.

ydb://[user[:password]@]host[:port]/database?path=directory     without TLS
ydbs://[user[:password]@]host[:port]/database?path=directory    with TLS
"""

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import MILLISECOND_US
from clepsydra.store.errors import WrongUrl
from clepsydra.store.url_options import UrlOptions, without_password

_PROTOCOLS = {"ydb": "grpc", "ydbs": "grpcs"}
_PORTS = {"ydb": 2136, "ydbs": 2135}
_DIRECTORY_DEFAULT = "clepsydra"
_DIRECTORY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_DATABASE = re.compile(r"(/[A-Za-z0-9._-]+)+")
_HOW = "write ydb://host:2136/database?path=directory"

# One request may take this long at most.
_TIMEOUT_MAX_MS = 5_000

_AUTHS = ("anonymous", "environment", "metadata")
_OPTIONS = ("path", "auth", "token_file", "key_file", "ca_file", "tracing", "sessions", "timeout_ms")


class Limits(NamedTuple):
    """Limits on everything that the SDK would let grow or wait without end."""

    # Sessions at once, and so requests in flight; further callers wait.
    sessions: int = 32
    # One request; the wait for a session has the same limit again.
    timeout_s: float = 5.0
    # No try begins after this. The last try may wait for a session and then for its response, and still ends within
    # `limits.CALL_RETRY_US`.
    retry_s: float = 8.0
    # DDL makes hundreds of partitions, and waits for another process that makes the same ones.
    ddl_timeout_s: float = 60.0
    ddl_retry_s: float = 120.0
    # One request of a tool, which may read whole tables.
    scan_timeout_s: float = 120.0
    connect_s: float = 10.0

    @property
    def late_after_us(self) -> int:
        """A put may be this old when its text begins, so that it is committed before a call may no longer be retried.

        >>> Limits(timeout_s=2.5).late_after_us
        17500000
        """
        return CALL_RETRY_US - min(round(self.timeout_s * 1000), _TIMEOUT_MAX_MS) * MILLISECOND_US


class Location(NamedTuple):
    """A directory of a database, and how to connect to it."""

    endpoint: str
    database: str
    # Relative to the database.
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
        """The full path of the directory."""
        return f"{self.database}/{self.directory}"

    def __str__(self) -> str:
        """The location as it may be shown to anyone."""
        return f"{self.endpoint}{self.path}"


def parse_url(url: str) -> Location:
    """
    >>> str(parse_url("ydb://localhost:2136/local?path=timers"))
    'grpc://localhost:2136/local/timers'
    """
    shown = without_password(url)
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        # Its text would quote a part of the URL, which may be a password.
        raise WrongUrl(f"the store URL {shown!r} cannot be read: {_HOW}") from None
    if not parts.hostname:
        raise WrongUrl(f"the store URL {shown!r} names no host: {_HOW}")
    if parts.fragment:
        raise WrongUrl(f"the store URL {shown!r} has a fragment, and a YDB URL takes none: {_HOW}")
    database = parts.path.rstrip("/")
    if not _DATABASE.fullmatch(database):
        raise WrongUrl(f"the store URL {shown!r} names no database: {_HOW}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    options = UrlOptions(parts.query, shown, _OPTIONS)
    location = Location(
        endpoint=f"{_PROTOCOLS[parts.scheme]}://{host}:{port}",
        database=database,
        directory=_directory(options, shown),
        secure=parts.scheme == "ydbs",
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
        auth=options.text("auth"),
        token_file=options.text("token_file"),
        key_file=options.text("key_file"),
        ca_file=options.text("ca_file"),
        tracing=options.flag("tracing"),
        limits=_limits(options),
    )
    _refuse_contradictions(location, shown)
    return location


def _directory(options: UrlOptions, shown: str) -> str:
    path = options.text("path")
    directory = _DIRECTORY_DEFAULT if path is None else path.strip("/")
    if not _DIRECTORY.fullmatch(directory):
        raise WrongUrl(
            f"the store URL {shown!r} has the path {directory!r}: "
            "a path is made of letters, digits and . _ - between slashes, and no part of it starts with a dot"
        )
    return directory


def _limits(options: UrlOptions) -> Limits:
    default = Limits()
    timeout_ms = options.number("timeout_ms", round(default.timeout_s * 1000), 10, _TIMEOUT_MAX_MS)
    return default._replace(sessions=options.number("sessions", default.sessions, 1, 1000), timeout_s=timeout_ms / 1000)


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
        raise WrongUrl(f"the store URL {shown!r} has {' and '.join(given)}: choose one way to authenticate")
    if location.ca_file is not None and not location.secure:
        raise WrongUrl(f"the store URL {shown!r} has a ca_file but no TLS: write ydbs:// instead of ydb://")
