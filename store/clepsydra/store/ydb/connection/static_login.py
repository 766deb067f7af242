"""Exchanges a user and a password for a token without blocking the event loop.

The SDK's own static credentials make a blocking call for that, every half hour, which would stall all other work.
"""

from typing import Any

import ydb

# The SDK chooses its generated code by the version of protobuf, which type checkers cannot follow.
from ydb._grpc.common import ydb_auth_v1_pb2_grpc  # type: ignore[attr-defined]
from ydb._grpc.common.protos import ydb_auth_pb2  # type: ignore[import-not-found]
from ydb.aio.connection import Connection
from ydb.aio.credentials import AbstractExpiringTokenCredentials

from clepsydra.store.ydb.url import Location

_TIMEOUT_S = 10
_TOKEN_LIFE_S = 30 * 60


class StaticLogin(AbstractExpiringTokenCredentials):
    def __init__(self, location: Location, user: str, password: str, root_certificates: bytes | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._config = ydb.DriverConfig(
            location.endpoint, location.database, credentials=None, root_certificates=root_certificates
        )
        self._user = user
        self._password = password
        self.extra_error_message = f"check the password of user {user!r}"

    async def _make_token_request(self) -> dict[str, Any]:
        connection = Connection(self._config.endpoint, self._config)
        try:
            await connection.connection_ready(ready_timeout=_TIMEOUT_S)
            result = await connection(
                ydb_auth_pb2.LoginRequest(user=self._user, password=self._password),
                ydb_auth_v1_pb2_grpc.AuthServiceStub,
                "Login",
                _login_result,
                ydb.BaseRequestSettings().with_timeout(_TIMEOUT_S),
            )
        finally:
            await connection.close()
        return {"expires_in": _TOKEN_LIFE_S, "access_token": result.token}


def _login_result(_rpc_state: object, response: Any) -> Any:
    ydb.issues._process_response(response.operation)
    result = ydb_auth_pb2.LoginResult()
    response.operation.result.Unpack(result)
    return result
