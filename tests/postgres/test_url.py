"""A store URL as users of libpq write it, and what is refused in one."""

from pathlib import Path
from urllib.parse import quote_plus

import pytest

from clepsydra.store.errors import WrongUrl
from clepsydra.store.postgres.url import parse_url


def test_a_url_needs_no_options() -> None:
    url = parse_url("postgresql://db/app")
    assert (url.dsn, url.schema, url.pool_size) == ("postgresql://db/app", "clepsydra", 10)
    assert url.shown == "postgresql://db/app"


def test_options_of_clepsydra_are_taken_out_and_those_of_libpq_are_left(tmp_path: Path) -> None:
    root = tmp_path / "ca.pem"
    root.touch()
    url = parse_url(
        "postgresql://ada@one,two:5433/app?schema=timers&pool_size=3&connect_timeout=9&sslmode=verify-full"
        f"&sslrootcert={root}&application_name=mill&options=-c%20geqo%3Doff"
    )
    assert url.dsn == f"postgresql://ada@one,two:5433/app?sslmode=verify-full&sslrootcert={quote_plus(str(root))}"
    assert (url.schema, url.pool_size, url.connect_timeout_s) == ("timers", 3, 9)
    assert url.settings == {"application_name": "mill", "options": "-c geqo=off"}


def test_only_a_server_that_accepts_writes_is_connected_to() -> None:
    assert parse_url("postgresql://db/app").arguments == {"target_session_attrs": "read-write"}
    primary = parse_url("postgresql://db/app?target_session_attrs=primary")
    assert primary.arguments == {"target_session_attrs": "primary"}


def test_the_certificates_of_the_system_can_be_trusted() -> None:
    url = parse_url("postgresql://db/app?sslrootcert=system")
    assert url.dsn == "postgresql://db/app"
    assert url.arguments["ssl"].check_hostname


def test_an_unsupported_option_is_ignored_if_libpq_would_not_insist_on_it() -> None:
    assert parse_url("postgresql://db/app?channel_binding=prefer&gssencmode=disable").dsn == "postgresql://db/app"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("shcema=x", "unknown option 'shcema': did you mean schema?"),
        ("keepalives=1", "unknown option 'keepalives'"),
        ("pool_size=1&pool_size=2", "has the option 'pool_size' twice"),
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
def test_a_wrong_option_is_refused_with_the_reason(options: str, reason: str) -> None:
    with pytest.raises(WrongUrl) as refused:
        parse_url(f"postgresql://ada:secret@db/app?{options}")
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)
