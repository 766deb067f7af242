"""Between a store and its server: TLS, as the URL asks for it, and a pooler, which is refused."""

import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import Unavailable, Unusable
from clepsydra.store.postgres import PostgresStore
from tests.postgres.installations import Installation
from tests.postgres.wire import Wire, open_wire

CERTIFICATE = Path(__file__).parent / "localhost.pem"


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def opens(url: str) -> bool:
    store = await PostgresStore.open(url, SystemClock())
    await store.close()
    return True


@pytest.mark.parametrize(
    "options", ["sslmode=require", "sslmode=prefer", f"sslmode=verify-full&sslrootcert={CERTIFICATE}"]
)
async def test_tls_is_used_if_the_url_asks_for_it(
    installation: Installation, tls: ssl.SSLContext, options: str
) -> None:
    async with open_wire(Wire(installation.server, tls)) as wire:
        url = installation.through(wire.url.replace("127.0.0.1", "localhost", 1))
        assert await opens(f"{url}&{options}")
        assert wire.encrypted > 0


async def test_a_server_without_tls_is_refused_if_the_url_requires_it(installation: Installation) -> None:
    with pytest.raises(Unavailable, match="rejected SSL upgrade"):
        await opens(f"{installation.url}&sslmode=require")


async def test_a_certificate_must_be_trusted_and_of_the_host(installation: Installation, tls: ssl.SSLContext) -> None:
    async with open_wire(Wire(installation.server, tls)) as wire:
        by_address = f"{installation.through(wire.url)}&sslmode=verify-full&sslrootcert={CERTIFICATE}"
        with pytest.raises(Unusable, match="a certificate that is not trusted"):
            await opens(by_address)
        # The certificate is not for this address, which verify-ca does not check.
        assert await opens(by_address.replace("verify-full", "verify-ca"))
        by_name = installation.through(wire.url.replace("127.0.0.1", "localhost", 1))
        with pytest.raises(Unusable, match="a certificate that is not trusted"):
            await opens(f"{by_name}&sslrootcert=system")


async def test_a_tls_mode_that_does_not_exist_is_refused(installation: Installation) -> None:
    with pytest.raises(Unusable, match="`sslmode` parameter must be one of"):
        await opens(f"{installation.url}&sslmode=sometimes")


def refuse_settings(startup: bytes) -> tuple[bytes, bytes]:
    """As PgBouncer answers a client that sends settings."""
    fields = b"SFATAL\0C08P01\0Munsupported startup parameter: plan_cache_mode\0\0"
    return startup, b"E" + struct.pack("!i", len(fields) + 4) + fields


def ignore_settings(startup: bytes) -> tuple[bytes, bytes]:
    """As PgBouncer connects a client whose settings it is configured to ignore."""
    parts = startup[8:].split(b"\0")
    pairs = dict(zip(parts[0::2], parts[1::2], strict=False))
    kept = b"".join(name + b"\0" + pairs[name] + b"\0" for name in (b"user", b"database")) + b"\0"
    return struct.pack("!i", len(kept) + 8) + startup[4:8] + kept, b""


@pytest.mark.parametrize("pooler", [refuse_settings, ignore_settings])
async def test_a_pooler_is_refused_with_a_sentence(
    installation: Installation, pooler: Callable[[bytes], tuple[bytes, bytes]]
) -> None:
    async with open_wire(Wire(installation.server, change_startup=pooler)) as wire:
        with pytest.raises(Unusable, match=r"PgBouncer.*; name PostgreSQL itself in the URL"):
            await opens(installation.through(wire.url))
        with pytest.raises(Unusable, match=r"PgBouncer.*; name PostgreSQL itself in the URL"):
            await PostgresStore.install(installation.through(wire.url), None)
