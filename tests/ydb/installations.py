"""Installations for tests: each on an endpoint of its own, or on a real server in a directory that tests share.

`make test-ydb YDB=grpc://localhost:2136/local` names a real server in the environment variable `CLEPSYDRA_TEST_YDB`. A
new directory costs new tables, and every text is compiled anew for it. So each process makes one for each number of
shards, empties it after each test, and removes it in the end.
"""

import os
import random
from itertools import count

from ydb.aio.query import QuerySessionPool

from clepsydra.core.ids import Ids
from clepsydra.store.ydb import YdbStore, parameters
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.connection.sessions import STATEMENTS, Sessions
from clepsydra.store.ydb.connection.version import server_version
from clepsydra.store.ydb.installation import MIGRATIONS_TABLE, TABLES
from clepsydra.store.ydb.url import Location, parse_url
from tests.ydb_endpoint import Endpoint, Engine, Evaluation
from tests.ydb_endpoint.endpoint import DATABASE

REAL_SERVER = os.environ.get("CLEPSYDRA_TEST_YDB")

_numbers = count(1)
# The number of shards of each directory on the real server. Those in use are not in here.
_empty: dict[str, int] = {}

_KEYS = {
    "scheduled_actions": "meta_action_id_hash, meta_action_id",
    "incoming_queue": "shard_id, created_at, action_id, action_guid",
    "processing_queue": "shard_id, scheduled_at, action_id, action_guid",
}


class Installation:
    """An installation, and the stores that were opened on it."""

    def __init__(self, evaluation: Evaluation = Evaluation.EACH_USE, trouble: float = 0.0) -> None:
        self.endpoint = None if REAL_SERVER else Endpoint(Engine(DATABASE, evaluation=evaluation))
        if self.endpoint is not None:
            self.endpoint.faults.trouble = trouble
        self.url = ""
        self._shards = 0
        self._stores: list[YdbStore] = []

    async def install(self, shards: int) -> None:
        self._shards = shards
        if self.endpoint is not None:
            await self.endpoint.start()
            self.url = self.endpoint.url()
        else:
            assert REAL_SERVER is not None
            reused = next((url for url, made_with in _empty.items() if made_with == shards), None)
            if reused is not None:
                del _empty[reused]
                self.url = reused
                return
            self.url = f"{as_store_url(REAL_SERVER)}?path=clepsydra_tests/{os.getpid()}_{next(_numbers)}"
        await YdbStore.install(self.url, shards, os.environ, _ids())

    async def open(self) -> YdbStore:
        store = await YdbStore.open(self.url, os.environ, _ids())
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        if self.endpoint is not None:
            await self.endpoint.stop()
        elif self.url:
            await _clear(parse_url(self.url), self._shards)
            _empty[self.url] = self._shards


def as_store_url(server: str) -> str:
    """
    >>> as_store_url("grpc://localhost:2136/local")
    'ydb://localhost:2136/local'
    """
    return server.replace("grpcs://", "ydbs://").replace("grpc://", "ydb://")


def _ids() -> Ids:
    return Ids(random.Random(next(_numbers)))


async def _clear(location: Location, shards: int) -> None:
    """Delete all rows, and free all locks."""
    prefix = f'PRAGMA TablePathPrefix("{location.path}");\n'
    driver = await connect(location, os.environ)
    try:
        async with QuerySessionPool(driver) as pool:
            for table, key in _KEYS.items():
                text = f"$all = (SELECT {key} FROM {table}); DELETE FROM {table} ON SELECT {key} FROM $all;"
                await pool.execute_with_retries(prefix + text)
            await _free_locks(pool, prefix, shards)
    finally:
        await driver.stop()


async def _free_locks(pool: QuerySessionPool, prefix: str, shards: int) -> None:
    """The text that makes the locks, which replaces them here."""
    text = STATEMENTS["install_locks"].replace("INSERT INTO", "REPLACE INTO")
    await pool.execute_with_retries(prefix + text, {"$locks": parameters.new_locks(shards)})


async def version_at(url: str) -> str:
    location = parse_url(url)
    driver = await connect(location, os.environ)
    sessions = Sessions(driver, location.path, location.limits)
    try:
        return await server_version(sessions) or "it does not say"
    finally:
        await sessions.close()
        await driver.stop()


async def remove_all() -> None:
    """Take away the directories that this process has made on the real server."""
    for url in list(_empty):
        await remove(parse_url(url))
        del _empty[url]


async def remove(location: Location) -> None:
    """Take an installation away: its tables and its directory."""
    driver = await connect(location, os.environ)
    try:
        async with QuerySessionPool(driver) as pool:
            for table in (*TABLES, MIGRATIONS_TABLE):
                await pool.execute_with_retries(f"DROP TABLE `{location.path}/{table}`;")
        await driver.scheme_client.remove_directory(location.path)
    finally:
        await driver.stop()
