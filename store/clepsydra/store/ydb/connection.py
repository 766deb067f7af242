"""Connects to the server, or says in a sentence why not."""

import logging
from collections.abc import Mapping

import ydb
import ydb.opentelemetry
from ydb.aio.driver import Driver, DriverConfig

from clepsydra.store.errors import StoreError, Unavailable, Unusable
from clepsydra.store.ydb.credentials import credentials_for, root_certificates_for
from clepsydra.store.ydb.location import Location

# What the SDK logs goes where the process logs, and nowhere if it does not; every error reaches its caller anyway.
logging.getLogger("ydb").addHandler(logging.NullHandler())

_REFUSALS = ("Unauthenticated", "UNAUTHORIZED", "Unauthorized", "StaticLogin", "check the password")


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
        discovery_request_timeout=int(location.limits.connect_s),
    )
    driver = Driver(config)
    try:
        await driver.wait(timeout=location.limits.connect_s, fail_fast=True)
    except (ydb.Error, TimeoutError) as error:
        failure = _failure(location, driver.discovery_debug_details() or str(error))
        await driver.stop()
        raise failure from error
    return driver


def _failure(location: Location, details: str) -> StoreError:
    reason = " ".join(details.split())[-300:]
    if any(refusal in details for refusal in _REFUSALS):
        return Unusable(f"the server at {location.endpoint} refuses the credentials; check them ({reason})")
    return Unavailable(
        f"no YDB answers at {location.endpoint} for database {location.database}; "
        f"check the address, the database and that the server runs ({reason})"
    )


def _turn_on_tracing() -> None:
    try:
        ydb.opentelemetry.enable_tracing()
    except ImportError as error:
        raise Unusable(
            "the store's URL says tracing=on, and OpenTelemetry is not installed; "
            "install it with `pip install 'ydb[opentelemetry]'`, or leave the option out"
        ) from error
