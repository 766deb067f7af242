"""Callers that send too much, too often, or not to the end: each is refused with a reason, and others are served."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from benchmarks.hostile.wire import (
    Connection,
    Refused,
    StreamEnded,
    call_head,
    headers_frame,
    message_head,
    reset_frame,
)
from clepsydra.core.limits import BATCH_ITEMS, ITEM_BYTES, ITEM_ENTRIES, METADATA_BYTES, REQUEST_BYTES
from clepsydra.scheduler.api.endpoint import SERVICE
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, GetActionRequest, PauseActionRequest
from tests.scheduler.channel import Line, line, refusal, until
from tests.scheduler.desk import a_create

INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT
RESOURCE_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
DEADLINE_EXCEEDED = grpc.StatusCode.DEADLINE_EXCEEDED

MIB = 2**20

# gRPC complains where a call that was cut off is collected: that must not happen in a test of something else.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collect_what_was_cut_off() -> Iterator[None]:
    yield
    gc.collect()


def endless_call(client: Line, method: str = "CreateAction") -> Any:
    """A call whose request never comes."""

    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    return client.channel.stream_unary(f"/{SERVICE.full_name}/{method}")(nothing())


def own_channel(client: Line) -> Any:
    """A channel with a connection of its own: gRPC would share that of another channel."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    return grpc.aio.insecure_channel(client.server.address, options)


async def is_served(client: Line) -> bool:
    return bool((await client.stub.CreateAction(a_create(""))).meta.id)


# What a message may be


async def test_a_single_call_is_capped_before_it_is_read() -> None:
    request = a_create("a")
    request.action.spec.handler.payload = b"x" * ITEM_BYTES
    async with line() as client:
        code, message, _ = await refusal(client.stub.CreateAction(request))

    assert code is INVALID_ARGUMENT
    assert message.startswith(f"the request must not be larger than {ITEM_BYTES:,} bytes: it has 1,0")


async def test_an_item_of_a_batch_is_capped_as_a_single_call_is() -> None:
    request = BatchCreateActionsRequest(requests=[a_create("a"), a_create("b")])
    request.requests[1].action.spec.handler.payload = b"x" * ITEM_BYTES
    async with line() as client:
        code, message, _ = await refusal(client.stub.BatchCreateActions(request))
        assert client.store.actions == {}

    assert code is INVALID_ARGUMENT
    assert message.startswith("requests[1]: must not be larger than 1,048,576 bytes: it has 1,0")


async def test_far_too_many_labels_are_refused_by_their_number() -> None:
    request = a_create("a")
    for number in range(20_000):
        request.action.meta.labels[f"{number:x}"] = ""
    batch = BatchCreateActionsRequest(requests=[a_create("b"), request])
    async with line() as client:
        alone = await refusal(client.stub.CreateAction(request))
        inside = await refusal(client.stub.BatchCreateActions(batch))

    words = f"must not have more than {ITEM_ENTRIES:,} entries: it has 20,000"
    assert alone[:2] == (INVALID_ARGUMENT, f"action.meta.labels: {words}")
    assert inside[:2] == (INVALID_ARGUMENT, f"requests[1].action.meta.labels: {words}")


async def test_more_labels_than_allowed_but_not_by_far_are_the_items_own_error() -> None:
    request = a_create("a")
    for number in range(100):
        request.action.meta.labels[f"{number:x}"] = ""
    batch = BatchCreateActionsRequest(requests=[a_create("b"), request])
    async with line() as client:
        results = (await client.stub.BatchCreateActions(batch)).results

    assert results[0].action.meta.id == "b"
    assert results[1].error.message == "requests[1].action.meta.labels: must not have more than 64 entries"


@pytest.mark.parametrize("method", ["CreateAction", "UpdateAction", "BatchCreateActions"])
async def test_large_parts_that_this_version_does_not_know_are_refused_by_their_size(method: str) -> None:
    unknown = b"\xf8\x3e\x01" * 100_000
    content = b"\x0a" + b"\xe0\xa7\x12" + unknown if method == "BatchCreateActions" else unknown
    async with line() as client:
        code, message, _ = await refusal(client.raw(method, content))

    assert code is INVALID_ARGUMENT
    assert (
        message.replace("300,002", "300,000")
        == "the request has 300,000 bytes that this version of Clepsydra does not know"
    )


async def test_a_large_request_with_a_field_of_a_newer_version_is_refused_with_its_number() -> None:
    request = a_create("a")
    request.action.spec.handler.name = "h"
    request.action.spec.handler.payload = b"x" * 200_000
    newer = request.SerializeToString() + b"\xf8\x3e\x01"
    async with line() as client:
        code, message, _ = await refusal(client.raw("CreateAction", newer))

    assert (code, message) == (
        INVALID_ARGUMENT,
        "the request has field number 1007, which this version of Clepsydra does not know",
    )


@pytest.mark.parametrize("content", [b"\x0a\x00" * 100_000, b"\x78\x01" * 100_000], ids=["items", "unknown fields"])
async def test_a_batch_of_far_too_many_parts_is_refused_without_reading_them(content: bytes) -> None:
    async with line() as client:
        code, message, _ = await refusal(client.raw("BatchCreateActions", content))

    assert (code, message) == (INVALID_ARGUMENT, f"requests: must not have more than {BATCH_ITEMS:,} entries")


@pytest.mark.parametrize(
    "content",
    [b"\x0a\xff\xff\xff\xff", b"\x0a" + b"\xff" * 20, b"\x0b" * 10, b"\x0a\xff\xff\x7f", b"\x08"],
    ids=["endless", "no number", "groups", "longer than it is", "nothing"],
)
async def test_a_large_batch_that_cannot_be_read_is_an_invalid_argument(content: bytes) -> None:
    item = a_create("a")
    item.action.spec.handler.payload = b"x" * 100_000
    sound = BatchCreateActionsRequest(requests=[item]).SerializeToString()
    async with line() as client:
        code, message, _ = await refusal(client.raw("BatchCreateActions", sound + content))

    assert code is INVALID_ARGUMENT
    assert message.startswith("the request cannot be read as a BatchCreateActionsRequest")


async def test_a_batch_of_the_largest_size_is_carried_out_in_order() -> None:
    request = BatchCreateActionsRequest(requests=[a_create(f"a{number}") for number in range(BATCH_ITEMS)])
    for item in request.requests:
        item.action.spec.handler.name = "h"
        item.action.spec.handler.payload = b"x" * 16_000
    assert REQUEST_BYTES - MIB < request.ByteSize() < REQUEST_BYTES
    async with line() as client, own_channel(client) as channel:
        answer = await Line(client.server, client.store, channel).raw("BatchCreateActions", request.SerializeToString())

    assert answer.count(b"x" * 16_000) == BATCH_ITEMS
    assert list(client.store.actions) == [f"a{number}" for number in range(BATCH_ITEMS)]


async def test_a_compressed_request_is_refused() -> None:
    """A message of one megabyte could become one of a gigabyte before anybody sees it."""
    async with line() as client:
        call = client.stub.CreateAction(a_create("a"), compression=grpc.Compression.Gzip)
        code, message, _ = await refusal(call)
        assert await is_served(client)

    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert "gzip" in message


@pytest.mark.parametrize("method", ["grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch"])
@pytest.mark.parametrize("content", [b"\xff\xff\xff", b"\x0a\x80\x80\x40" + b"x" * MIB], ids=["unreadable", "large"])
async def test_health_refuses_what_it_cannot_read(method: str, content: bytes) -> None:
    async with line() as client:
        call = client.channel.unary_stream(f"/{method}")(content)
        code, message, _ = await refusal(call.read())

    assert code is INVALID_ARGUMENT
    assert "HealthCheckRequest" in message or "must not be larger than 65,536 bytes" in message


async def test_reflection_refuses_what_it_cannot_read() -> None:
    name = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    async with line() as client:
        for content in (b"\xff\xff\xff", b"\x0a\x80\x80\x40" + b"x" * MIB):
            asked = client.channel.stream_stream(f"/{name}")()
            await asked.write(content)
            code, message, _ = await refusal(asked.read())
            assert code is INVALID_ARGUMENT
            assert "ServerReflectionRequest" in message or "must not be larger than 65,536 bytes" in message


async def test_headers_that_are_too_large_are_refused() -> None:
    async with line() as client:
        await client.stub.CreateAction(a_create("a"), metadata=[("x", "a" * (METADATA_BYTES // 2))])
        call = client.stub.CreateAction(a_create("b"), metadata=[("x", "a" * METADATA_BYTES)])
        code, _, _ = await refusal(call)

    assert code is RESOURCE_EXHAUSTED


# What does not come to its end


async def test_a_call_without_a_request_is_an_invalid_argument() -> None:
    async def none() -> AsyncIterator[bytes]:
        return
        yield b""

    async with line() as client:
        code, message, _ = await refusal(client.channel.stream_unary(f"/{SERVICE.full_name}/CreateAction")(none()))

    assert (code, message) == (INVALID_ARGUMENT, "the request is missing: the call was ended without one")


async def test_a_request_that_does_not_come_is_given_up() -> None:
    async with line(receive_timeout_ms=100) as client:
        code, message, _ = await refusal(endless_call(client))
        assert await is_served(client)

    assert (code, message) == (DEADLINE_EXCEEDED, "the request did not come within 0.1 s")


async def test_the_connection_with_the_most_unfinished_calls_loses_them_and_others_are_served() -> None:
    async with line(unfinished_calls=10) as client:
        many = [asyncio.ensure_future(refusal(endless_call(client))) for _ in range(20)]
        async with own_channel(client) as channel:
            other = Line(client.server, client.store, channel)
            for _ in range(20):
                assert await is_served(other)
        done, _ = await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
        code, message, _ = done.pop().result()
        for each in many:
            each.cancel()

    assert code is RESOURCE_EXHAUSTED
    assert message.startswith("too many unfinished requests are on their way")


async def test_unfinished_messages_are_bounded_by_their_size() -> None:
    def send_halves(address: str) -> int:
        """Returns how many of the calls were ended by the server."""
        with Connection(address) as connection:
            streams = [connection.next_stream() for _ in range(20)]
            head = call_head("BatchCreateActions")
            connection.send(b"".join(headers_frame(stream, head) for stream in streams))
            for stream in streams:
                connection.send_data(stream, message_head(REQUEST_BYTES))
            for _ in range(15):
                for stream in streams:
                    with contextlib.suppress(StreamEnded):
                        connection.send_data(stream, bytes(MIB), timeout_s=30)
            return len(connection.ended_streams)

    async with line(unfinished_bytes=REQUEST_BYTES) as client:
        with capture_logs() as logged:
            ended = await asyncio.to_thread(send_halves, client.server.address)
        assert await is_served(client)

    assert ended == 20
    assert {entry["reason"] for entry in logged} == {"too much of unfinished requests has come"}


async def test_a_connection_has_no_more_calls_than_it_may() -> None:
    def begin_calls(address: str) -> int:
        """Returns how many of 60 calls were refused."""
        with Connection(address) as connection:
            head = call_head("CreateAction")
            for _ in range(60):
                connection.send(headers_frame(connection.next_stream(), head))
            while len(connection.ended_streams) < 39:
                connection.receive(30)
            return len(connection.ended_streams)

    async with line(max_calls_per_connection=20) as client:
        # gRPC allows one more than it announces.
        assert await asyncio.to_thread(begin_calls, client.server.address) in {39, 40}
        assert await is_served(client)


async def test_calls_that_fail_give_their_places_back_at_once() -> None:
    """Not when the garbage is collected: until then, a caller with many failing calls would be refused."""
    async with line() as client:
        gc.disable()
        try:
            for _ in range(3 * SchedulerSettings().max_calls_per_connection):
                code, _, _ = await refusal(client.stub.GetAction(GetActionRequest(id="nobody")))
                assert code is grpc.StatusCode.NOT_FOUND
                code, _, _ = await refusal(client.stub.PauseAction(PauseActionRequest(id="nobody")))
                assert code is grpc.StatusCode.NOT_FOUND
        finally:
            gc.enable()


async def test_a_connection_that_resets_its_calls_is_ended() -> None:
    def reset_calls(address: str) -> str:
        head = call_head("CreateAction")
        with Connection(address) as connection:
            try:
                while True:
                    streams = [connection.next_stream() for _ in range(100)]
                    connection.send(b"".join(headers_frame(each, head) + reset_frame(each) for each in streams))
                    connection.receive(0)
            except Refused as error:
                return str(error)

    async with line() as client:
        with capture_logs() as logged:
            assert await asyncio.to_thread(reset_calls, client.server.address)
        assert await is_served(client)

    assert [entry["event"] for entry in logged] == ["a connection begins calls without finishing them, and is ended"]


async def test_connections_are_bounded_and_other_callers_find_room() -> None:
    async with line(max_connections=20) as client:
        assert await is_served(client)
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                with contextlib.suppress(Refused):
                    stack.enter_context(Connection(client.server.address))
            with capture_logs() as logged:
                await until(lambda: bool(logged))
            assert await is_served(client)
            async with own_channel(client) as channel:
                newcomer = Line(client.server, client.store, channel)
                assert (await newcomer.stub.CreateAction(a_create("new"), wait_for_ready=True)).meta.id == "new"

    assert logged[0]["event"] == "there are too many connections: some are ended"
