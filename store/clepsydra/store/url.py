"""The store is one URL everywhere: its scheme names the backend, the rest says where the installation is.

A backend is imported when a URL asks for it, so that nobody needs the drivers of the others.
"""

import difflib
import os
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.store.errors import Unusable, WrongUrl
from clepsydra.store.port import Store

if TYPE_CHECKING:
    from clepsydra.store.postgres import PostgresStore
    from clepsydra.store.ydb import YdbStore

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")


class Backend(NamedTuple):
    """What a scheme stands for."""

    open: Callable[[str, Clock], Awaitable[Store]]
    # None as the number of shards: as many as there are, or the default for a new installation.
    install: Callable[[str, int | None], Awaitable[int]]


async def open_store(url: str, clock: Clock) -> Store:
    """The installation at this URL, which must have been made before."""
    return await _backend_of(url).open(url, clock)


async def install_store(url: str, shards: int | None) -> int:
    """Make an installation if there is none. Returns its number of shards; another number than it has is refused."""
    return await _backend_of(url).install(url, shards)


def without_password(url: str) -> str:
    """A URL as it may be shown to anyone.

    >>> without_password("postgresql://ada:secret@db/clepsydra")
    'postgresql://ada:***@db/clepsydra'
    """
    return _PASSWORD.sub(r"\1:***", url)


def sqlite_path(url: str) -> str:
    """The file that a sqlite URL names. What follows the third slash is the path, exactly as it is written.

    >>> sqlite_path("sqlite:///clepsydra.db"), sqlite_path("sqlite:////var/lib/clepsydra.db")
    ('clepsydra.db', '/var/lib/clepsydra.db')
    """
    shown = without_password(url)
    how = "write sqlite:///relative/path.db or sqlite:////absolute/path.db"
    if not url.startswith("sqlite:///"):
        raise WrongUrl(f"the store URL {shown!r} has no three slashes after its scheme: {how}")
    path = url.removeprefix("sqlite:///")
    if not path or path.endswith("/"):
        raise WrongUrl(f"the store URL {shown!r} names no file: {how}")
    if "?" in path or "#" in path:
        raise WrongUrl(f"the store URL {shown!r} has a query or a fragment, and a sqlite URL takes none: {how}")
    if path == ":memory:":
        raise WrongUrl(f"the store URL {shown!r} names no file, and what is only in memory would be lost: {how}")
    if not path.isprintable():
        raise WrongUrl(f"the store URL {shown!r} has a control character in its path: {how}")
    return path


async def _open_sqlite(url: str, clock: Clock) -> Store:
    from clepsydra.store.sqlite import SqliteStore

    return SqliteStore.open(sqlite_path(url), clock)


async def _install_sqlite(url: str, shards: int | None) -> int:
    from clepsydra.store.sqlite import SqliteStore

    return SqliteStore.install(sqlite_path(url), shards)


async def _open_postgres(url: str, clock: Clock) -> Store:
    return await _postgres().open(url, clock)


async def _install_postgres(url: str, shards: int | None) -> int:
    return await _postgres().install(url, shards)


def _postgres() -> "type[PostgresStore]":
    try:
        from clepsydra.store.postgres import PostgresStore
    except ModuleNotFoundError as error:
        raise Unusable("a store on PostgreSQL needs the driver asyncpg: pip install 'clepsydra[postgres]'") from error
    return PostgresStore


async def _open_ydb(url: str, _clock: Clock) -> Store:
    """Without a clock: the store's time is the server's."""
    return await _ydb().open(url, os.environ, Ids.from_system())


async def _install_ydb(url: str, shards: int | None) -> int:
    return await _ydb().install(url, shards, os.environ, Ids.from_system())


def _ydb() -> "type[YdbStore]":
    try:
        from clepsydra.store.ydb import YdbStore
    except ModuleNotFoundError as error:
        raise Unusable("a store on YDB needs the SDK ydb: pip install 'clepsydra[ydb]'") from error
    return YdbStore


_BACKENDS = {
    "sqlite": Backend(_open_sqlite, _install_sqlite),
    "postgresql": Backend(_open_postgres, _install_postgres),
    "postgres": Backend(_open_postgres, _install_postgres),
    "ydb": Backend(_open_ydb, _install_ydb),
    "ydbs": Backend(_open_ydb, _install_ydb),
}


def _backend_of(url: str) -> Backend:
    scheme, colon, _rest = url.partition(":")
    backend = _BACKENDS.get(scheme)
    if backend is not None and colon:
        return backend
    shown = without_password(url)
    if not colon:
        raise WrongUrl(
            f"the store {shown!r} is not a URL: it starts with a scheme ({', '.join(_BACKENDS)}), "
            "such as sqlite:///clepsydra.db for a file"
        )
    near = difflib.get_close_matches(scheme, _BACKENDS, n=1)
    meant = f"did you mean {near[0]}?" if near else f"it can be {', '.join(_BACKENDS)}"
    raise WrongUrl(f"the store URL {shown!r} has the unknown scheme {scheme!r}: {meant}")
