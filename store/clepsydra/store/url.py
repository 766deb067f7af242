"""A store is named by one URL: its scheme is the backend, the rest says where the installation is.

A backend is imported only when a URL names it, so that nobody needs the drivers of the others.
"""

import difflib
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.store.errors import Unusable, WrongUrl
from clepsydra.store.port import Store
from clepsydra.store.url_options import without_password

if TYPE_CHECKING:
    from clepsydra.store.postgres import PostgresStore
    from clepsydra.store.ydb import YdbStore


class Backend(NamedTuple):
    """How to open and install the stores of one scheme."""

    open: Callable[[str, Clock], Awaitable[Store]]
    # The number of shards, or None: as many as there are, or the default for a new installation.
    install: Callable[[str, int | None], Awaitable[int]]


async def open_store(url: str, clock: Clock) -> Store:
    """Open the installation at this URL, which must exist."""
    return await _backend_of(url).open(url, clock)


async def install_store(url: str, shards: int | None) -> int:
    """Make an installation if there is none, or upgrade it. Returns its number of shards.

    Another number of shards than it has is refused.
    """
    return await _backend_of(url).install(url, shards)


def sqlite_path(url: str) -> str:
    """The file that a sqlite URL names: exactly what follows the third slash.

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

    return await SqliteStore.open(sqlite_path(url), clock)


async def _install_sqlite(url: str, shards: int | None) -> int:
    from clepsydra.store.sqlite import SqliteStore

    return await SqliteStore.install(sqlite_path(url), shards)


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
    """The store's time is the server's, so it needs no clock."""
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
