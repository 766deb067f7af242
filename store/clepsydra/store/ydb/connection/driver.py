"""Connects to the server, or says in one sentence why that failed.

The SDK's driver looks for the database's nodes in the background, again and again, and reports only that it found none.
So the store first asks for the nodes itself, once, through a connection of its own: that shows the error's real cause.
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
from clepsydra.store.ydb.connection.credentials import credentials_for, root_certificates_for
from clepsydra.store.ydb.url import Location

# The SDK's warnings go to the process's log, if it has one. Every error reaches its caller anyway.
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
        # Times stay microseconds: the SDK would turn them into datetimes.
        query_client_settings=ydb.QueryClientSettings().with_native_timestamp_in_result_sets(False),
        discovery_request_timeout=max(1, int(location.limits.connect_s)),
    )
    try:
        await _ask_for_nodes(config, location.limits.connect_s)
    except (ydb.Error, TimeoutError, OSError) as error:
        raise _failure(location, error) from error
    driver = Driver(config)
    try:
        await driver.wait(timeout=location.limits.connect_s, fail_fast=True)
    except (ydb.Error, TimeoutError) as error:
        await driver.stop(timeout=_STOP_S)
        raise _failure(location, error) from error
    return driver


async def _ask_for_nodes(config: DriverConfig, timeout_s: float) -> None:
    host, _, port = config.endpoint.rpartition(":")
    async with asyncio.timeout(timeout_s):
        # A port where nobody listens is reported at once; gRPC would try it until the time is over.
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
    # If the SDK cannot get a token, it raises an error of exactly this class, whatever the cause.
    is_token_missing = type(error) is ydb.issues.ConnectionError
    if is_token_missing or isinstance(error, ydb.issues.Unauthenticated | ydb.issues.Unauthorized):
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
