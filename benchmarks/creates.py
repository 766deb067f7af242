"""Creates a second through gRPC: one by one, 64 in flight, and in batches of 500."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc
import uvloop

from clepsydra.core.times import HOUR_US, set_us
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub

BATCH = 500
PAYLOAD = b'{"user": 42}'
# A response may be greater than gRPC lets through by default.
OPTIONS = [("grpc.max_receive_message_length", 64 * 2**20)]


def action(start_us: int, handler: str = "noop", payload: bytes = PAYLOAD) -> CreateActionRequest:
    """A create with an id that the scheduler chooses."""
    request = CreateActionRequest()
    spec = request.action.spec
    set_us(spec.schedule.start_time, start_us)
    target = spec.handler
    target.name = handler
    target.payload = payload
    target.content_type = "application/json"
    return request


def batch(jobs: Iterable[tuple[int, bytes]], handler: str = "noop") -> BatchCreateActionsRequest:
    """Creates of actions that differ in their start times and payloads: one of them is changed and copied for each."""
    request, each = BatchCreateActionsRequest(), action(0, handler)
    start, target, add = each.action.spec.schedule.start_time, each.action.spec.handler, request.requests.append
    for start_us, payload in jobs:
        set_us(start, start_us)
        target.payload = payload
        add(each)
    return request


async def create_in_batches(address: str, starts_us: list[int], handler: str = "noop", in_flight: int = 4) -> None:
    """Create one action for each start time, in batches; raises if any is refused."""
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
        chunks = iter([starts_us[n : n + BATCH] for n in range(0, len(starts_us), BATCH)])

        async def send() -> None:
            for chunk in chunks:
                response = await stub.BatchCreateActions(batch([(start_us, PAYLOAD) for start_us in chunk], handler))
                refused = [result.error for result in response.results if result.HasField("error")]
                if refused:
                    raise RuntimeError(f"a create was refused: {refused[0]}")

        await asyncio.gather(*(send() for _ in range(in_flight)))


def batched_per_s(address: str, count: int) -> float:
    now_us = time.time_ns() // 1000
    return _rate(count, lambda: create_in_batches(address, [now_us + HOUR_US + n for n in range(count)]))


def single_per_s(address: str, count: int, in_flight: int) -> float:
    now_us = time.time_ns() // 1000
    request = action(now_us + HOUR_US)

    def call(channel: grpc.aio.Channel) -> Callable[[], Awaitable[Any]]:
        stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
        return lambda: stub.CreateAction(request)

    return _rate(count, lambda: _calls(address, call, count, in_flight))


def empty_per_s(address: str, count: int, in_flight: int) -> float:
    """Calls of a method that does nothing: what Python's gRPC can do at most."""

    def call(channel: grpc.aio.Channel) -> Callable[[], Awaitable[Any]]:
        method = channel.unary_unary("/benchmark/Empty", _as_it_is, _as_it_is)
        return lambda: method(b"")

    return _rate(count, lambda: _calls(address, call, count, in_flight))


async def _calls(
    address: str, call_on: Callable[[grpc.aio.Channel], Callable[[], Awaitable[Any]]], count: int, in_flight: int
) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        call = call_on(channel)
        left = iter(range(count))

        async def caller() -> None:
            for _ in left:
                await call()

        await asyncio.gather(*(caller() for _ in range(in_flight)))


def _as_it_is(message: bytes) -> bytes:
    return message


def _rate(count: int, work: Callable[[], Awaitable[None]]) -> float:
    async def timed() -> float:
        started = time.perf_counter()
        await work()
        return time.perf_counter() - started

    return count / uvloop.run(timed())
