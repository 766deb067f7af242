"""The services that the SDK needs beside queries: discovery, directories and login."""

from collections.abc import Mapping
from typing import Any

from tests.ydb_endpoint.engine import Engine
from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.messages import (
    auth_grpc,
    auth_pb2,
    discovery_grpc,
    discovery_pb2,
    scheme_grpc,
    scheme_pb2,
)
from tests.ydb_endpoint.scheme import children_of, make_directory, remove_directory
from tests.ydb_endpoint.services.responses import operation, refused_operation


class DiscoveryService(discovery_grpc.DiscoveryServiceServicer):  # type: ignore[misc]  # generated code has no types
    """One node: the endpoint itself."""

    def __init__(self, engine: Engine, *, secure: bool) -> None:
        self._engine = engine
        self._secure = secure
        self.port = 0

    async def ListEndpoints(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's own name
        if request.database != self._engine.database.root:
            refused = Refused(Status.NOT_FOUND, f"Database not found: {request.database}")
            return refused_operation(discovery_pb2.ListEndpointsResponse, refused)
        node = discovery_pb2.EndpointInfo(address="127.0.0.1", port=self.port, node_id=1, ssl=self._secure)
        return operation(discovery_pb2.ListEndpointsResponse, discovery_pb2.ListEndpointsResult(endpoints=[node]))


class SchemeService(scheme_grpc.SchemeServiceServicer):  # type: ignore[misc]
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def MakeDirectory(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("MakeDirectory")
        try:
            self._inject("MakeDirectory")
            make_directory(self._engine.database, request.path)
        except Refused as refused:
            return refused_operation(scheme_pb2.MakeDirectoryResponse, refused)
        return operation(scheme_pb2.MakeDirectoryResponse)

    async def RemoveDirectory(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("RemoveDirectory")
        try:
            self._inject("RemoveDirectory")
            remove_directory(self._engine.database, request.path)
        except Refused as refused:
            return refused_operation(scheme_pb2.RemoveDirectoryResponse, refused)
        return operation(scheme_pb2.RemoveDirectoryResponse)

    async def ListDirectory(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("ListDirectory")
        try:
            self._inject("ListDirectory")
            children = children_of(self._engine.database, request.path)
        except Refused as refused:
            return refused_operation(scheme_pb2.ListDirectoryResponse, refused)
        kinds = scheme_pb2.Entry
        entries = [
            scheme_pb2.Entry(name=child.name, type=kinds.TABLE if child.is_table else kinds.DIRECTORY)
            for child in children
        ]
        return operation(scheme_pb2.ListDirectoryResponse, scheme_pb2.ListDirectoryResult(children=entries))

    def _inject(self, rpc: str) -> None:
        fault = self._engine.faults.next_for(rpc)
        if fault is not None:
            raise Refused(fault.status, "as planned")


class AuthService(auth_grpc.AuthServiceServicer):  # type: ignore[misc]
    """Exchanges a user and a password for a token."""

    def __init__(self, users: Mapping[str, str], token: str) -> None:
        self._users = users
        self._token = token

    async def Login(self, request: Any, context: Any) -> Any:  # noqa: N802
        if self._users.get(request.user) != request.password:
            refused = Refused(Status.UNAUTHORIZED, f"Invalid password for {request.user}")
            return refused_operation(auth_pb2.LoginResponse, refused)
        return operation(auth_pb2.LoginResponse, auth_pb2.LoginResult(token=self._token))
