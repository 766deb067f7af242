"""A store URL as libpq's users write it: postgresql://user@host,host/database?schema=name&sslmode=verify-full.

Three options are ours; the rest mean what they mean to libpq. What the driver would silently not do is refused.
"""

import os
import re
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from clepsydra.store.errors import WrongUrl
from clepsydra.store.url import without_password

SCHEMA_DEFAULT = "clepsydra"
POOL_SIZE_DEFAULT = 10
CONNECT_TIMEOUT_DEFAULT_S = 5

# Room is left for the prefix of the notification channel within PostgreSQL's 63 bytes.
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")

_OURS = ("schema", "pool_size", "connect_timeout")
_OF_LIBPQ = frozenset(
    {
        "host",
        "port",
        "dbname",
        "user",
        "password",
        "passfile",
        "service",
        "sslmode",
        "sslcert",
        "sslkey",
        "sslpassword",
        "sslrootcert",
        "sslcrl",
        "sslnegotiation",
        "ssl_min_protocol_version",
        "ssl_max_protocol_version",
        "target_session_attrs",
        "krbsrvname",
        "gsslib",
        "application_name",
        "options",
    }
)
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
# These are for the server.
_SETTINGS = ("application_name", "options")
# The driver does neither: these are the values that leave it free not to.
_HARMLESS = {"channel_binding": ("disable", "prefer"), "gssencmode": ("disable", "prefer")}


class Address(NamedTuple):
    """Where an installation is, and how to get there."""

    # As the driver takes it.
    dsn: str
    schema: str
    pool_size: int
    connect_timeout_s: int
    # What the driver takes beside the DSN.
    arguments: Mapping[str, Any]
    # What the URL sets of the server's settings.
    settings: Mapping[str, str]
    # As it may be shown to anyone.
    shown: str


def parsed(url: str) -> Address:
    """
    >>> address = parsed("postgresql://ada:secret@db/app?schema=timers&sslmode=require")
    >>> address.schema, address.dsn
    ('timers', 'postgresql://ada:secret@db/app?sslmode=require')
    >>> address.shown
    'postgresql://ada:***@db/app?schema=timers'
    """
    place, _, query = url.partition("?")
    shown = without_password(place)
    options = _options(query, shown)
    schema = checked_schema(options.pop("schema", SCHEMA_DEFAULT))
    pool_size = _number(options, "pool_size", POOL_SIZE_DEFAULT, 1, 1_000, shown)
    connect_timeout_s = _number(options, "connect_timeout", CONNECT_TIMEOUT_DEFAULT_S, 1, 60, shown)
    arguments = _trust_of_the_system(options, shown)
    _check_files(options, shown)
    arguments["target_session_attrs"] = _kind_of_server(options, shown)
    settings = {name: options.pop(name) for name in _SETTINGS if name in options}
    return Address(
        f"{place}?{urlencode(options)}" if options else place,
        schema,
        pool_size,
        connect_timeout_s,
        arguments,
        settings,
        f"{shown}?schema={schema}" if schema != SCHEMA_DEFAULT else shown,
    )


def checked_schema(name: str) -> str:
    """The name, if it can be one: it becomes part of statements."""
    if not _SCHEMA.fullmatch(name):
        raise WrongUrl(
            f"the schema {name!r} cannot be: it is named by at most 48 lower-case letters, digits and underscores, "
            "not a digit first"
        )
    return name


def _options(query: str, shown: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise WrongUrl(f"the store URL {shown!r} has options that are not name=value&name=value: {error}") from error
    for name, value in list(options.items()):
        if name in _HARMLESS:
            if options.pop(name) not in _HARMLESS[name]:
                raise WrongUrl(f"the store URL {shown!r} asks for {name}={value}, which the driver asyncpg cannot do")
        elif name not in _OF_LIBPQ and name not in _OURS:
            raise WrongUrl(
                f"the store URL {shown!r} has the unknown option {name!r}: it can have {', '.join(_OURS)} and "
                f"libpq's {', '.join(sorted(_OF_LIBPQ))}"
            )
    return options


def _number(options: dict[str, str], name: str, default: int, least: int, most: int, shown: str) -> int:
    text = options.pop(name, str(default))
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise WrongUrl(f"the store URL {shown!r} has {name}={text}: it must be a whole number from {least} to {most}")
    return int(text)


def _trust_of_the_system(options: dict[str, str], shown: str) -> dict[str, Any]:
    """`sslrootcert=system` trusts whom the machine trusts, and then hosts are verified in full."""
    if options.get("sslrootcert") != "system":
        return {}
    if options.pop("sslmode", "verify-full") != "verify-full":
        raise WrongUrl(f"the store URL {shown!r} has sslrootcert=system, which needs sslmode=verify-full")
    del options["sslrootcert"]
    return {"ssl": ssl.create_default_context()}


def _check_files(options: dict[str, str], shown: str) -> None:
    """What the driver reports of a missing file looks like a server that is down."""
    for name in _FILES:
        if name in options and not os.access(options[name], os.R_OK):
            raise WrongUrl(f"the store URL {shown!r} has {name}={options[name]}, and no such file can be read")


def _kind_of_server(options: dict[str, str], shown: str) -> str:
    """A standby that has taken over is found by asking each host whether it can be written to."""
    kind = options.pop("target_session_attrs", "read-write")
    if kind not in ("read-write", "primary"):
        raise WrongUrl(
            f"the store URL {shown!r} has target_session_attrs={kind}, and a store is written to: leave it out, or say "
            "read-write or primary"
        )
    return kind
