"""A real gRPC channel to a server that runs in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_health.v1 import health_pb2_grpc
from grpc_status import rpc_status

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.api.endpoint import SERVICE
from clepsydra.scheduler.api.server import RunningServer, serve
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.scheduler.desk import LineToStore


def stub_of(channel: Any) -> Any:
    """The generated client, which comes without types."""
    return SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]


class Line:
    """A client, the server that it is connected to, and the store behind that."""

    def __init__(self, server: RunningServer, store: LineToStore, channel: Any) -> None:
        self.server = server
        self.store = store
        self.channel = channel
        self.stub = stub_of(channel)
        self.health: Any = health_pb2_grpc.HealthStub(channel)

    async def raw(self, method: str, content: bytes) -> bytes:
        answer: bytes = await self.channel.unary_unary(f"/{SERVICE.full_name}/{method}")(content)
        return answer


@asynccontextmanager
async def line(**settings: Any) -> AsyncIterator[Line]:
    clock = SystemClock()
    store = LineToStore(clock)
    chosen = SchedulerSettings(listen="127.0.0.1:0", **settings)
    server = await serve(Scheduler(store, clock, Ids.from_system(), chosen), chosen)
    try:
        async with grpc.aio.insecure_channel(server.address) as channel:
            yield Line(server, store, channel)
    finally:
        await server.stop(0)


async def refusal(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str, list[Any]]:
    """The code, message and details of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    status = rpc_status.from_call(refused.value)  # type: ignore[arg-type]  # it takes calls of both kinds
    details: list[Any] = []
    for packed in [] if status is None else status.details:
        detail = BadRequest() if packed.Is(BadRequest.DESCRIPTOR) else ErrorInfo()
        assert packed.Unpack(detail)
        details.append(detail)
    return refused.value.code(), refused.value.details() or "", details


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  # the server says nothing, so it has to be looked at
            await asyncio.sleep(0)
