"""A store URL as libpq's users write it, and what is refused in one."""

from pathlib import Path
from urllib.parse import quote_plus

import pytest

from clepsydra.store.errors import WrongUrl
from clepsydra.store.postgres.address import parsed


def test_a_url_needs_no_options() -> None:
    address = parsed("postgresql://db/app")
    assert (address.dsn, address.schema, address.pool_size) == ("postgresql://db/app", "clepsydra", 10)
    assert address.shown == "postgresql://db/app"


def test_what_is_ours_is_taken_out_and_what_is_libpqs_is_left(tmp_path: Path) -> None:
    root = tmp_path / "ca.pem"
    root.touch()
    address = parsed(
        "postgresql://ada@one,two:5433/app?schema=timers&pool_size=3&connect_timeout=9&sslmode=verify-full"
        f"&sslrootcert={root}&application_name=mill&options=-c%20geqo%3Doff"
    )
    assert address.dsn == f"postgresql://ada@one,two:5433/app?sslmode=verify-full&sslrootcert={quote_plus(str(root))}"
    assert (address.schema, address.pool_size, address.connect_timeout_s) == ("timers", 3, 9)
    assert address.settings == {"application_name": "mill", "options": "-c geqo=off"}


def test_only_a_server_that_can_be_written_to_is_wanted() -> None:
    assert parsed("postgresql://db/app").arguments == {"target_session_attrs": "read-write"}
    assert parsed("postgresql://db/app?target_session_attrs=primary").arguments == {"target_session_attrs": "primary"}


def test_the_certificates_of_the_system_can_be_trusted() -> None:
    address = parsed("postgresql://db/app?sslrootcert=system")
    assert address.dsn == "postgresql://db/app"
    assert address.arguments["ssl"].check_hostname


def test_values_that_leave_the_driver_free_are_accepted() -> None:
    assert parsed("postgresql://db/app?channel_binding=prefer&gssencmode=disable").dsn == "postgresql://db/app"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("shcema=x", "unknown option 'shcema'"),
        ("keepalives=1", "unknown option 'keepalives'"),
        ("schema=Timers", "lower-case"),
        ("schema=", "lower-case"),
        ("schema=a;drop", "lower-case"),
        (f"schema={'a' * 49}", "at most 48"),
        ("pool_size=0", "pool_size=0: it must be a whole number from 1 to 1000"),
        ("pool_size=ten", "pool_size=ten"),
        ("pool_size=-1", "pool_size=-1"),
        ("connect_timeout=61", "from 1 to 60"),
        ("channel_binding=require", "asks for channel_binding=require, which the driver asyncpg cannot do"),
        ("gssencmode=require", "asks for gssencmode=require"),
        ("target_session_attrs=standby", "a store is written to"),
        ("sslrootcert=system&sslmode=require", "needs sslmode=verify-full"),
        ("sslmode=verify-full&sslrootcert=/nowhere.pem", "sslrootcert=/nowhere.pem, and no such file can be read"),
        ("schema", "not name=value"),
    ],
)
def test_what_is_refused_is_named(options: str, reason: str) -> None:
    with pytest.raises(WrongUrl) as refused:
        parsed(f"postgresql://ada:secret@db/app?{options}")
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)
