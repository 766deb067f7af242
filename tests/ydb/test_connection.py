"""Connecting: URLs, credentials, TLS, and the errors of each."""

import asyncio
import datetime
import ipaddress
import json
import random
from pathlib import Path

import pytest
import ydb
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from ydb.aio.iam import MetadataUrlCredentials, ServiceAccountCredentials

from clepsydra.core.ids import Ids
from clepsydra.store.errors import Unavailable, Unusable, WrongUrl
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.connection.credentials import credentials_for, root_certificates_for
from clepsydra.store.ydb.connection.static_login import StaticLogin
from clepsydra.store.ydb.url import parse_url
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.endpoint import TOKEN, Certificate

USERS = {"ada": "secret"}


def ids() -> Ids:
    return Ids(random.Random(1))


async def install_and_open(url: str, environment: dict[str, str] | None = None) -> None:
    await YdbStore.install(url, 2, environment or {}, ids())
    store = await YdbStore.open(url, environment or {}, ids())
    assert await store.now() > 0
    await store.close()


# URLs.


def test_a_url_says_where_the_installation_is() -> None:
    location = parse_url("ydb://ada:s%40crt@db.example:2137/ru/prod?path=team/timers&sessions=50&timeout_ms=2500")
    assert (location.endpoint, location.database, location.directory) == (
        "grpc://db.example:2137",
        "/ru/prod",
        "team/timers",
    )
    assert location.path == "/ru/prod/team/timers"
    assert (location.user, location.password, location.secure) == ("ada", "s@crt", False)
    assert (location.limits.sessions, location.limits.timeout_s) == (50, 2.5)
    assert "s@crt" not in str(location)


def test_options_that_a_url_leaves_out_have_defaults() -> None:
    plain, secure = parse_url("ydb://localhost/local"), parse_url("ydbs://localhost/local/")
    assert (plain.endpoint, secure.endpoint) == ("grpc://localhost:2136", "grpcs://localhost:2135")
    assert plain.path == secure.path == "/local/clepsydra"
    assert (plain.user, plain.auth, plain.ca_file, plain.tracing) == (None, None, None, False)
    assert parse_url("ydb://[::1]:2136/local").endpoint == "grpc://[::1]:2136"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ydb:///local", "names no host"),
        ("ydb://localhost:2136", "names no database"),
        ("ydb://localhost:99999/local", "cannot be read"),
        ("ydb://localhost:2136/local?pth=x", "did you mean path"),
        ("ydb://localhost:2136/local?path=a&path=b", "twice"),
        ("ydb://localhost:2136/local?path=.sys", "starts with a dot"),
        ('ydb://localhost:2136/local?path=a"b', "made of letters"),
        ("ydb://localhost:2136/local?path=a//b", "made of letters"),
        ("ydb://localhost:2136/lo cal", "names no database"),
        ("ydb://localhost:2136/local#x", "fragment"),
        ("ydb://localhost:2136/local?sessions=0", "from 1 to 1000"),
        ("ydb://localhost:2136/local?timeout_ms=soon", "a whole number from 10 to 5000"),
        ("ydb://localhost:2136/local?tracing=yes", "on or off"),
        ("ydb://localhost:2136/local?auth=magic", "anonymous, environment, metadata"),
        ("ydb://ada@localhost:2136/local?auth=metadata", "a user and auth"),
        ("ydb://localhost:2136/local?ca_file=x", "ydbs://"),
    ],
)
def test_a_wrong_url_is_refused_with_a_sentence(url: str, message: str) -> None:
    with pytest.raises(WrongUrl, match=message):
        parse_url(url)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(WrongUrl) as caught:
        parse_url("ydb://ada:secret@localhost:2136")
    assert "secret" not in str(caught.value)


# Credentials.


async def test_the_default_is_anonymous() -> None:
    async with Endpoint() as endpoint:
        await install_and_open(endpoint.url())


async def test_a_user_and_a_password_in_the_url() -> None:
    async with Endpoint(users=USERS) as endpoint:
        await install_and_open(endpoint.url().replace("127.0.0.1", "ada:secret@127.0.0.1"))


async def test_a_user_and_a_password_from_the_environment() -> None:
    async with Endpoint(users=USERS) as endpoint:
        await install_and_open(endpoint.url(), {"YDB_USER": "ada", "YDB_PASSWORD": "secret"})


async def test_an_access_token_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    async with Endpoint(users=USERS) as endpoint:
        await install_and_open(endpoint.url(), {"YDB_ACCESS_TOKEN_CREDENTIALS": TOKEN})
        await install_and_open(endpoint.url(options=f"&token_file={file}"))


@pytest.mark.parametrize(
    ("user", "environment"),
    [
        ("ada:wrong@", {}),
        ("nobody:secret@", {}),
        ("", {}),
        ("", {"YDB_ACCESS_TOKEN_CREDENTIALS": "forged"}),
    ],
)
async def test_refused_credentials_are_reported_at_once(user: str, environment: dict[str, str]) -> None:
    async with Endpoint(users=USERS) as endpoint:
        url = endpoint.url().replace("127.0.0.1", f"{user}127.0.0.1")
        with pytest.raises(Unusable, match="refuses the credentials") as caught:
            await YdbStore.open(url, environment, ids())
        assert "secret" not in str(caught.value)


def key_file(tmp_path: Path) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"id": "key", "service_account_id": "account", "private_key": text}))
    return file


async def test_every_environment_variable_of_the_sdk_is_understood(tmp_path: Path) -> None:
    plain, secure = parse_url("ydb://host/local"), parse_url("ydbs://host/local")
    file = str(key_file(tmp_path))
    ways = {
        "YDB_ANONYMOUS_CREDENTIALS": ("1", ydb.AnonymousCredentials),
        "YDB_METADATA_CREDENTIALS": ("1", MetadataUrlCredentials),
        "YDB_ACCESS_TOKEN_CREDENTIALS": ("token", ydb.AccessTokenCredentials),
        "YDB_SERVICE_ACCOUNT_KEY_FILE_CREDENTIALS": (file, ServiceAccountCredentials),
        "YDB_USER": ("ada", StaticLogin),
    }
    for location in (plain, secure):
        for variable, (value, kind) in ways.items():
            assert isinstance(credentials_for(location, {variable: value}, None), kind)
    assert isinstance(credentials_for(plain, {}, None), ydb.AnonymousCredentials)
    # As the SDK does: without any setting, ask the cloud.
    assert isinstance(credentials_for(secure, {}, None), MetadataUrlCredentials)
    assert isinstance(
        credentials_for(parse_url("ydbs://host/local?auth=anonymous"), {}, None), ydb.AnonymousCredentials
    )
    assert isinstance(credentials_for(parse_url("ydb://host/local?auth=metadata"), {}, None), MetadataUrlCredentials)
    assert isinstance(
        credentials_for(parse_url(f"ydbs://host/local?key_file={file}"), {}, None), ServiceAccountCredentials
    )


async def test_the_url_comes_before_the_environment() -> None:
    environment = {"YDB_ACCESS_TOKEN_CREDENTIALS": "forged"}
    async with Endpoint(users=USERS) as endpoint:
        await install_and_open(endpoint.url().replace("127.0.0.1", "ada:secret@127.0.0.1"), environment)


@pytest.mark.parametrize("option", ["key_file", "token_file"])
async def test_a_missing_file_is_named(option: str) -> None:
    with pytest.raises(Unusable, match="/nowhere/at/all"):
        await YdbStore.open(f"ydb://localhost/local?{option}=/nowhere/at/all", {}, ids())


async def test_an_unusable_key_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text("{}")
    with pytest.raises(Unusable, match=r"key\.json cannot be used"):
        await YdbStore.open(f"ydb://localhost/local?key_file={file}", {}, ids())


# TLS.


def certificate() -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        signed.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


async def test_tls_with_a_root_certificate_from_a_file(tmp_path: Path) -> None:
    certified, file = certificate(), tmp_path / "ca.pem"
    file.write_bytes(certified.chain)
    async with Endpoint(certificate=certified, users=USERS) as endpoint:
        url = endpoint.url().replace("127.0.0.1", "ada:secret@127.0.0.1")
        await install_and_open(f"{url}&ca_file={file}")
        await install_and_open(url, {"YDB_SSL_ROOT_CERTIFICATES_FILE": str(file)})


async def test_a_server_with_an_unknown_certificate_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(certificate().chain)
    async with Endpoint(certificate=certificate()) as endpoint:
        location = parse_url(endpoint.url(options=f"&auth=anonymous&ca_file={file}"))
        short = location._replace(limits=location.limits._replace(connect_s=1.0))
        with pytest.raises(Unavailable, match="no YDB answers"):
            await YdbStore.open_at(short, {}, ids())


def test_without_tls_there_are_no_certificates(tmp_path: Path) -> None:
    environment = {"YDB_SSL_ROOT_CERTIFICATES_FILE": str(tmp_path / "missing")}
    assert root_certificates_for(parse_url("ydb://host/local"), environment) is None
    with pytest.raises(Unusable, match="missing"):
        root_certificates_for(parse_url("ydbs://host/local"), environment)


# Errors.


async def test_a_server_that_is_not_there_is_reported_at_once() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(Unavailable, match=rf"no YDB answers at grpc://127\.0\.0\.1:{port};.*Connect call failed"):
        await YdbStore.open(f"ydb://127.0.0.1:{port}/local", {}, ids())


async def test_a_database_that_does_not_exist_is_reported() -> None:
    async with Endpoint() as endpoint:
        url = endpoint.url().replace("/local", "/other")
        with pytest.raises(Unusable, match="no database /other"):
            await YdbStore.open(url, {}, ids())


async def test_tracing_without_opentelemetry_is_refused_with_a_sentence() -> None:
    async with Endpoint() as endpoint:
        with pytest.raises(Unusable, match=r"pip install 'ydb\[opentelemetry\]'"):
            await YdbStore.open(endpoint.url(options="&tracing=on"), {}, ids())
