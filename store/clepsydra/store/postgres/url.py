"""A store URL as users of libpq write it: postgresql://user@host,host/database?schema=name&sslmode=verify-full.

Three options are Clepsydra's; the others mean what they mean to libpq. What the driver would ignore is refused.
"""

import os
import re
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from clepsydra.store.errors import WrongUrl
from clepsydra.store.url_options import UrlOptions, without_password

SCHEMA_DEFAULT = "clepsydra"
POOL_SIZE_DEFAULT = 10
CONNECT_TIMEOUT_DEFAULT_S = 5

# PostgreSQL allows 63 bytes; the rest is for the prefix of the notification channel.
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")

_PORT_MAX = 65535

_OPTIONS = ("schema", "pool_size", "connect_timeout")
_LIBPQ_OPTIONS = (
    "application_name",
    "dbname",
    "gsslib",
    "host",
    "krbsrvname",
    "options",
    "passfile",
    "password",
    "port",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
    "user",
)
# The driver supports neither option. With these values libpq does not insist on them.
_UNSUPPORTED_OPTIONS = {"channel_binding": ("disable", "prefer"), "gssencmode": ("disable", "prefer")}
_FILE_OPTIONS = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_SERVER_SETTINGS = ("application_name", "options")


class PostgresUrl(NamedTuple):
    """Where an installation is, and how to connect to it."""

    # As the driver takes it.
    dsn: str
    schema: str
    pool_size: int
    connect_timeout_s: int
    # What the driver takes beside the DSN.
    arguments: Mapping[str, Any]
    # Settings of the server's session that the URL gives.
    settings: Mapping[str, str]
    # As it may be shown to anyone.
    shown: str


def parse_url(url: str) -> PostgresUrl:
    """
    >>> parsed = parse_url("postgresql://ada:secret@db/app?schema=timers&sslmode=require")
    >>> parsed.schema, parsed.dsn
    ('timers', 'postgresql://ada:secret@db/app?sslmode=require')
    >>> parsed.shown
    'postgresql://ada:***@db/app?schema=timers'
    """
    place, _, query = url.partition("?")
    shown = without_password(place)
    _check_hosts(place, shown)
    options = UrlOptions(query, shown, known=[*_OPTIONS, *_LIBPQ_OPTIONS, *_UNSUPPORTED_OPTIONS])
    schema = options.text("schema")
    schema = check_schema(SCHEMA_DEFAULT if schema is None else schema)
    pool_size = options.number("pool_size", POOL_SIZE_DEFAULT, 1, 1_000)
    connect_timeout_s = options.number("connect_timeout", CONNECT_TIMEOUT_DEFAULT_S, 1, 60)
    _check_unsupported(options, shown)
    target = _target_session_attrs(options, shown)
    libpq = options.remaining()
    arguments = {"target_session_attrs": target, **_system_trust(libpq, shown)}
    _check_files(libpq, shown)
    settings = {name: libpq.pop(name) for name in _SERVER_SETTINGS if name in libpq}
    return PostgresUrl(
        f"{place}?{urlencode(libpq)}" if libpq else place,
        schema,
        pool_size,
        connect_timeout_s,
        arguments,
        settings,
        f"{shown}?schema={schema}" if schema != SCHEMA_DEFAULT else shown,
    )


def check_schema(name: str) -> str:
    """The name, if it is valid. It becomes part of statements."""
    if not _SCHEMA.fullmatch(name):
        raise WrongUrl(
            f"the schema cannot be named {name!r}: a name has at most 48 lower-case letters, digits and underscores, "
            "and does not start with a digit"
        )
    return name


def _check_hosts(place: str, shown: str) -> None:
    """The driver's own message would quote what stands where a port is expected, which may be a part of a password."""
    try:
        hosts = urlsplit(place).netloc.rpartition("@")[2]
    except ValueError:
        hosts = ":"
    for host in hosts.split(","):
        port = host.rpartition("]")[2].rpartition(":")
        if port[1] and not (port[2].isascii() and port[2].isdigit() and int(port[2]) <= _PORT_MAX):
            raise WrongUrl(
                f"the store URL {shown!r} has a host or a port that cannot be read: write "
                "postgresql://user:password@host:5432/database, with %40, %2F and so on for signs in the password"
            )


def _check_unsupported(options: UrlOptions, shown: str) -> None:
    for name, ignorable in _UNSUPPORTED_OPTIONS.items():
        value = options.text(name)
        if value is not None and value not in ignorable:
            raise WrongUrl(f"the store URL {shown!r} asks for {name}={value}, which the driver asyncpg cannot do")


def _target_session_attrs(options: UrlOptions, shown: str) -> str:
    """By default each host is asked whether it accepts writes, which finds a standby that has become the primary."""
    target = options.text("target_session_attrs")
    if target not in (None, "read-write", "primary"):
        raise WrongUrl(
            f"the store URL {shown!r} has target_session_attrs={target}, and a store is written to: leave it out, or "
            "say read-write or primary"
        )
    return target or "read-write"


def _system_trust(libpq: dict[str, str], shown: str) -> dict[str, Any]:
    """`sslrootcert=system` trusts the authorities that the machine trusts, and verifies the host's name."""
    if libpq.get("sslrootcert") != "system":
        return {}
    if libpq.pop("sslmode", "verify-full") != "verify-full":
        raise WrongUrl(f"the store URL {shown!r} has sslrootcert=system, which needs sslmode=verify-full")
    del libpq["sslrootcert"]
    return {"ssl": ssl.create_default_context()}


def _check_files(libpq: dict[str, str], shown: str) -> None:
    """The driver reports a missing file as if the server were down."""
    for name in _FILE_OPTIONS:
        if name in libpq and not os.access(libpq[name], os.R_OK):
            raise WrongUrl(f"the store URL {shown!r} has {name}={libpq[name]}, and no such file can be read")
