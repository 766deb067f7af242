"""The gRPC server of the endpoint, on a free port of this machine."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import grpc
import grpc.aio

from tests.ydb_endpoint.engine import Engine
from tests.ydb_endpoint.faults import Faults
from tests.ydb_endpoint.messages import auth_grpc, discovery_grpc, query_grpc, scheme_grpc
from tests.ydb_endpoint.services.other_services import AuthService, DiscoveryService, SchemeService
from tests.ydb_endpoint.services.query_service import QueryService
from tests.ydb_endpoint.services.tcp_proxy import TcpProxy

DATABASE = "/local"
TOKEN = "the endpoint's token"
_TICKET_HEADER = "x-ydb-auth-ticket"
_LOGIN = "/Ydb.Auth.V1.AuthService/Login"
_MESSAGE_BYTES = 64 * 1024 * 1024


class Certificate(NamedTuple):
    chain: bytes
    key: bytes


class Endpoint:
    """
    async with Endpoint() as endpoint:
        store = await YdbStore.open(endpoint.url("timers"), …)
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        # A password for each user. If there are users, every request needs a token.
        users: Mapping[str, str] | None = None,
        certificate: Certificate | None = None,
        # Whether a test can break connections, which needs a TCP proxy in front of the server.
        can_cut: bool = False,
    ) -> None:
        self.engine = engine or Engine(DATABASE)
        self._certificate = certificate
        self._proxy = TcpProxy() if can_cut else None
        interceptors = [] if users is None else [_TokenCheck()]
        self._server = grpc.aio.server(
            interceptors=interceptors,
            options=[
                ("grpc.max_receive_message_length", _MESSAGE_BYTES),
                ("grpc.so_reuseport", 0),
                # The SDK pings the server every ten seconds.
                ("grpc.http2.min_ping_interval_without_data_ms", 1000),
            ],
        )
        self._queries = QueryService(self.engine, self.cut)
        self._discovery = DiscoveryService(self.engine, secure=certificate is not None)
        query_grpc.add_QueryServiceServicer_to_server(self._queries, self._server)
        discovery_grpc.add_DiscoveryServiceServicer_to_server(self._discovery, self._server)
        scheme_grpc.add_SchemeServiceServicer_to_server(SchemeService(self.engine), self._server)
        auth_grpc.add_AuthServiceServicer_to_server(AuthService(users or {}, TOKEN), self._server)
        self.port = 0

    @property
    def faults(self) -> Faults:
        return self.engine.faults

    def url(self, path: str = "clepsydra", options: str = "") -> str:
        scheme = "ydb" if self._certificate is None else "ydbs"
        return f"{scheme}://127.0.0.1:{self.port}{self.engine.database.root}?path={path}{options}"

    def cut(self) -> None:
        assert self._proxy is not None, "make the endpoint with can_cut=True to break its connections"
        self._proxy.cut()

    async def start(self, port: int = 0) -> None:
        address = f"127.0.0.1:{0 if self._proxy else port}"
        if self._certificate is None:
            bound = self._server.add_insecure_port(address)
        else:
            pair = (self._certificate.key, self._certificate.chain)
            bound = self._server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        await self._server.start()
        if self._proxy is not None:
            await self._proxy.open(bound, port=port)
            bound = self._proxy.port
        self.port = self._discovery.port = bound

    async def stop(self) -> None:
        self.faults.release_slow.set()
        self._queries.end_all()
        if self._proxy is not None:
            await self._proxy.close()
        await self._server.stop(grace=None)

    async def __aenter__(self) -> "Endpoint":
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()


class _TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs alone
    """Refuses every request without the token, except the login that returns it."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        metadata = dict(handler_call_details.invocation_metadata)
        if handler_call_details.method == _LOGIN or metadata.get(_TICKET_HEADER) == TOKEN:
            return await continuation(handler_call_details)
        handler = await continuation(handler_call_details)
        return _refusing(handler)


def _refusing(handler: Any) -> Any:
    async def refuse(_request: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Access denied without a valid token")

    make = grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
    return make(refuse, handler.request_deserializer, handler.response_serializer)
