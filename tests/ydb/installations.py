"""Installations for tests: each on an endpoint of its own, or in a directory of its own on a real server.

`make test-ydb YDB=grpc://localhost:2136/local` names a real server in the environment variable `CLEPSYDRA_TEST_YDB`.
Each test removes its directory there.
"""

import os
import random
from itertools import count

from ydb.aio.query import QuerySessionPool

from clepsydra.core.ids import Ids
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.installation import MIGRATIONS_TABLE, TABLES
from clepsydra.store.ydb.url import parse_url
from tests.ydb_endpoint import Endpoint, Engine, Evaluation
from tests.ydb_endpoint.endpoint import DATABASE

REAL_SERVER = os.environ.get("CLEPSYDRA_TEST_YDB")

_numbers = count(1)


class Installation:
    """An installation, and the stores that were opened on it."""

    def __init__(self, evaluation: Evaluation = Evaluation.EACH_USE, trouble: float = 0.0) -> None:
        self.endpoint = None if REAL_SERVER else Endpoint(Engine(DATABASE, evaluation=evaluation))
        if self.endpoint is not None:
            self.endpoint.faults.trouble = trouble
        self.url = ""
        self._stores: list[YdbStore] = []

    async def install(self, shards: int) -> None:
        if self.endpoint is None:
            assert REAL_SERVER is not None
            self.url = f"{as_store_url(REAL_SERVER)}?path=clepsydra_tests/{os.getpid()}_{next(_numbers)}"
        else:
            await self.endpoint.start()
            self.url = self.endpoint.url()
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
            await _remove(self.url)


def as_store_url(server: str) -> str:
    """
    >>> as_store_url("grpc://localhost:2136/local")
    'ydb://localhost:2136/local'
    """
    return server.replace("grpcs://", "ydbs://").replace("grpc://", "ydb://")


def _ids() -> Ids:
    return Ids(random.Random(next(_numbers)))


async def _remove(url: str) -> None:
    location = parse_url(url)
    driver = await connect(location, os.environ)
    try:
        async with QuerySessionPool(driver) as pool:
            for table in (*TABLES, MIGRATIONS_TABLE):
                await pool.execute_with_retries(f"DROP TABLE `{location.path}/{table}`;")
        await driver.scheme_client.remove_directory(location.path)
    finally:
        await driver.stop()
