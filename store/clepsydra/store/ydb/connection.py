"""Connects to the server, or says in a sentence why not.

The SDK's driver looks for nodes in the background, again and again, and tells in the end that it found none. So the
door is knocked at first: one connection, one question, and whatever is wrong is known by its own name.
"""

import asyncio
import logging
from collections.abc import Mapping

import ydb
import ydb.opentelemetry
from ydb import _apis
from ydb.aio.connection import Connection
from ydb.aio.driver import Driver, DriverConfig
from ydb.resolver import DiscoveryResult

from clepsydra.store.errors import StoreError, Unavailable, Unusable
from clepsydra.store.ydb.credentials import credentials_for, root_certificates_for
from clepsydra.store.ydb.location import Location

# The SDK's warnings go where the process logs, and nowhere if it does not; every error reaches its caller anyway.
logging.getLogger("ydb").addHandler(logging.NullHandler())
logging.getLogger("ydb").setLevel(logging.WARNING)

_STOP_S = 1


async def connect(location: Location, environment: Mapping[str, str]) -> Driver:
    """A driver that has found the database's nodes."""
    if location.tracing:
        _turn_on_tracing()
    root_certificates = root_certificates_for(location, environment)
    config = DriverConfig(
        location.endpoint,
        location.database,
        credentials=credentials_for(location, environment, root_certificates),
        root_certificates=root_certificates,
        # Times come as the numbers that they are.
        query_client_settings=ydb.QueryClientSettings().with_native_timestamp_in_result_sets(False),
        discovery_request_timeout=max(1, int(location.limits.connect_s)),
    )
    try:
        await _knock(config, location.limits.connect_s)
    except (ydb.Error, TimeoutError, OSError) as error:
        raise _failure(location, error) from error
    driver = Driver(config)
    try:
        await driver.wait(timeout=location.limits.connect_s, fail_fast=True)
    except (ydb.Error, TimeoutError) as error:
        await driver.stop(timeout=_STOP_S)
        raise _failure(location, error) from error
    return driver


async def _knock(config: DriverConfig, timeout_s: float) -> None:
    """Ask for the database's nodes, once."""
    host, _, port = config.endpoint.rpartition(":")
    async with asyncio.timeout(timeout_s):
        # gRPC would try a port that nobody listens at until its time is over.
        _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.close()
        connection = Connection(config.endpoint, config)
        try:
            await connection.connection_ready(ready_timeout=timeout_s)
            await connection(
                _apis.ydb_discovery.ListEndpointsRequest(database=config.database),
                _apis.DiscoveryService.Stub,
                _apis.DiscoveryService.ListEndpoints,
                DiscoveryResult.from_response,
                ydb.BaseRequestSettings().with_timeout(timeout_s),
            )
        finally:
            await connection.close()


def _failure(location: Location, error: Exception) -> StoreError:
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    # A token that could not be had is an error of this very class, whatever the reason was.
    if (
        isinstance(error, ydb.issues.Unauthenticated | ydb.issues.Unauthorized)
        or type(error) is ydb.issues.ConnectionError
    ):
        return Unusable(f"the server at {location.endpoint} refuses the credentials; check them ({reason})")
    if isinstance(error, ydb.issues.NotFound | ydb.issues.SchemeError | ydb.issues.BadRequest):
        return Unusable(
            f"the server at {location.endpoint} has no database {location.database}; check the store's URL ({reason})"
        )
    return Unavailable(f"no YDB answers at {location.endpoint}; check the address and that the server runs ({reason})")


def _turn_on_tracing() -> None:
    try:
        ydb.opentelemetry.enable_tracing()
    except ImportError as error:
        raise Unusable(
            "the store's URL says tracing=on, and OpenTelemetry is not installed; "
            "install it with `pip install 'ydb[opentelemetry]'`, or leave the option out"
        ) from error
