"""The credentials of the store: from the URL, or from the environment variables that the SDK documents.

The URL comes first. If it has no credentials, the SDK's environment variables decide, in the SDK's order. If they are
not set either, a connection without TLS is anonymous, and one with TLS asks the cloud's metadata service.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import ydb
from ydb.aio.iam import MetadataUrlCredentials, ServiceAccountCredentials
from ydb.aio.oauth2_token_exchange import Oauth2TokenExchangeCredentials
from ydb.credentials import Credentials

from clepsydra.store.errors import Unusable
from clepsydra.store.ydb.connection.static_login import StaticLogin
from clepsydra.store.ydb.url import Location

_VARIABLES = (
    "YDB_SERVICE_ACCOUNT_KEY_FILE_CREDENTIALS",
    "YDB_USER",
    "YDB_ANONYMOUS_CREDENTIALS",
    "YDB_METADATA_CREDENTIALS",
    "YDB_ACCESS_TOKEN_CREDENTIALS",
    "YDB_OAUTH2_KEY_FILE",
)


def credentials_for(location: Location, environment: Mapping[str, str], root_certificates: bytes | None) -> Credentials:
    if location.user is not None:
        return StaticLogin(location, location.user, location.password, root_certificates)
    if location.key_file is not None:
        return _service_account(location.key_file)
    if location.token_file is not None:
        return ydb.AccessTokenCredentials(_read(location.token_file, "access token").strip())
    if location.auth == "anonymous":
        return ydb.AnonymousCredentials()
    if location.auth == "metadata":
        return MetadataUrlCredentials()
    if location.auth == "environment" or location.secure or any(name in environment for name in _VARIABLES):
        return _from_environment(location, environment, root_certificates)
    return ydb.AnonymousCredentials()


def _from_environment(
    location: Location, environment: Mapping[str, str], root_certificates: bytes | None
) -> Credentials:
    key_file = environment.get("YDB_SERVICE_ACCOUNT_KEY_FILE_CREDENTIALS")
    if key_file is not None:
        return _service_account(key_file)
    user = environment.get("YDB_USER")
    if user is not None:
        return StaticLogin(location, user, environment.get("YDB_PASSWORD", ""), root_certificates)
    if environment.get("YDB_ANONYMOUS_CREDENTIALS") == "1":
        return ydb.AnonymousCredentials()
    if environment.get("YDB_METADATA_CREDENTIALS") == "1":
        return MetadataUrlCredentials()
    token = environment.get("YDB_ACCESS_TOKEN_CREDENTIALS")
    if token is not None:
        return ydb.AccessTokenCredentials(token)
    oauth2_key_file = environment.get("YDB_OAUTH2_KEY_FILE")
    if oauth2_key_file:
        return _from_file(Oauth2TokenExchangeCredentials.from_file, oauth2_key_file, "OAuth 2.0 key")
    return MetadataUrlCredentials()


def root_certificates_for(location: Location, environment: Mapping[str, str]) -> bytes | None:
    """None: the certificates of the SDK. A connection without TLS has none to check."""
    if not location.secure:
        return None
    file = location.ca_file or environment.get("YDB_SSL_ROOT_CERTIFICATES_FILE")
    return None if file is None else _read(file, "root certificates").encode()


def _service_account(file: str) -> Credentials:
    return _from_file(ServiceAccountCredentials.from_file, file, "service account key")


def _from_file(make: Callable[[str], Credentials], file: str, what: str) -> Credentials:
    # The SDK reads the file itself. Reading it here first gives a clear error if that is impossible.
    _read(file, what)
    try:
        return make(file)
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(
            f"the {what} in {file} cannot be used ({type(error).__name__}: {error}); check the file"
        ) from error


def _read(file: str, what: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Unusable(f"the {what} cannot be read from {file} ({reason}); check the file") from error
