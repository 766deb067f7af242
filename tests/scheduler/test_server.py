"""The service through a real gRPC channel."""

import asyncio
import random
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.limits import REQUEST_BYTES
from clepsydra.scheduler.api.connections import Connections
from clepsydra.scheduler.api.endpoint import SERVICE, Endpoint
from clepsydra.scheduler.api.listening import CannotListen
from clepsydra.scheduler.api.reception import Reception, ReceptionBounds
from clepsydra.scheduler.api.server import serve
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.v1 import scheduler_pb2
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchDeleteActionsRequest,
    DeleteActionRequest,
    DeleteActionResponse,
    GetActionRequest,
    ListActionsRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)
from tests.scheduler.channel import line, refusal, stub_of, until
from tests.scheduler.desk import LineToStore, Trouble, a_create

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVING = health_pb2.HealthCheckResponse.SERVING


async def test_every_call_goes_through() -> None:
    async with line() as client:
        stub = client.stub
        created: ScheduledAction = await stub.CreateAction(a_create("a"))
        assert await stub.GetAction(GetActionRequest(id="a")) == created
        assert list((await stub.ListActions(ListActionsRequest())).actions) == [created]
        updated = await stub.UpdateAction(UpdateActionRequest(action=created))
        assert updated.meta.revision == 2
        assert (await stub.PauseAction(PauseActionRequest(id="a"))).meta.revision == 3
        assert (await stub.ResumeAction(ResumeActionRequest(id="a"))).meta.revision == 4
        assert (await stub.RunAction(RunActionRequest(id="a"))).meta.revision == 5
        assert await stub.DeleteAction(DeleteActionRequest(id="a")) == DeleteActionResponse()
        batch = await stub.BatchCreateActions(BatchCreateActionsRequest(requests=[a_create("b"), a_create("b")]))
        assert batch.results[0].action.meta.id == "b"
        assert batch.results[1].error.code == grpc.StatusCode.ALREADY_EXISTS.value[0]
        gone = await stub.BatchDeleteActions(BatchDeleteActionsRequest(requests=[{"id": "b"}, {"id": "c"}]))
        assert gone.results[0].HasField("deleted")
        assert gone.results[1].error.code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_errors_have_codes_messages_and_details() -> None:
    async with line() as client:
        created = await client.stub.CreateAction(a_create("a"))
        client.store.troubles.append(Trouble.UNUSABLE)

        other_etag = "x" + created.meta.etag
        for method, request, code, reason, words in [
            ("CreateAction", a_create("b"), "UNAVAILABLE", "NOT_DONE", "nothing was done"),
            ("GetAction", GetActionRequest(id="c"), "NOT_FOUND", "NOT_FOUND", "'c'"),
            ("CreateAction", a_create("a"), "ALREADY_EXISTS", "ALREADY_EXISTS", "'a'"),
            ("DeleteAction", DeleteActionRequest(id="a", etag=other_etag), "ABORTED", "ETAG_MISMATCH", "'a'"),
            ("ResumeAction", ResumeActionRequest(id="a"), "FAILED_PRECONDITION", "WRONG_STATE", "SCHEDULED"),
        ]:
            answered, message, details = await refusal(getattr(client.stub, method)(request))
            assert answered.name == code
            assert words in message
            assert details == [ErrorInfo(reason=reason, domain="clepsydra")]


async def test_wrong_fields_are_named_in_the_message_and_in_the_details() -> None:
    request = a_create("a b")
    request.action.spec.retry.jitter = 7
    async with line() as client:
        code, message, details = await refusal(client.stub.CreateAction(request))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message.startswith("action.meta.id: must be")
    assert [violation.field for violation in details[0].field_violations] == [
        "action.meta.id",
        "action.spec.retry.jitter",
    ]
    assert all(violation.description for violation in details[0].field_violations)
    assert details[1].reason == "INVALID_ARGUMENT"


async def test_however_much_is_wrong_the_answer_arrives() -> None:
    request = a_create("ä" * 100_000)
    for number in range(64):
        request.action.meta.labels["ä" * 10_000 + str(number)] = ""
    masked = UpdateActionRequest(action={"meta": {"id": "a"}}, update_mask={"paths": ["ü" * 10_000] * 64})
    async with line() as client:
        for call in (client.stub.CreateAction(request), client.stub.UpdateAction(masked)):
            code, message, details = await refusal(call)
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert message
            assert details[0].field_violations


@pytest.mark.parametrize("method", sorted(SERVICE.methods_by_name))
async def test_bytes_that_are_no_message_are_an_invalid_argument(method: str) -> None:
    async with line() as client:
        code, message, details = await refusal(client.raw(method, b"\xff\xff\xff"))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert SERVICE.methods_by_name[method].input_type.name in message
    assert details[0].field_violations[0].field == ""


DOCUMENTED = {
    "OK",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "ABORTED",
    "FAILED_PRECONDITION",
}


async def test_no_input_whatever_gets_an_answer_that_is_not_documented() -> None:
    """Valid requests with bytes changed, cut and doubled, thrown at every method."""
    chance = random.Random(17)
    seeds = [
        a_create("a", request_id="r").SerializeToString(),
        UpdateActionRequest(
            action=a_create("a").action, update_mask={"paths": ["spec.retry", "meta.labels"]}, allow_missing=True
        ).SerializeToString(),
        BatchCreateActionsRequest(requests=[a_create("b"), a_create("c")]).SerializeToString(),
        DeleteActionRequest(id="a", etag="e", allow_missing=True).SerializeToString(),
        ListActionsRequest(page_size=3, page_token="t").SerializeToString(),
    ]
    codes = set()
    async with line() as client:
        for _ in range(400):
            content = bytearray(chance.choice(seeds))
            for _ in range(chance.randrange(4)):
                place = chance.randrange(len(content))
                content[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
                content = content or bytearray(b"\0")
            try:
                await client.raw(chance.choice(sorted(SERVICE.methods_by_name)), bytes(content))
                codes.add("OK")
            except grpc.aio.AioRpcError as error:
                codes.add(error.code().name)

    assert {"OK", "INVALID_ARGUMENT"} <= codes <= DOCUMENTED


async def test_a_message_that_is_too_large_is_refused() -> None:
    async with line() as client:
        code, _, _ = await refusal(client.raw("CreateAction", b"\0" * (REQUEST_BYTES + 1)))

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_method_that_does_not_exist_is_unimplemented() -> None:
    async with line() as client:
        code, _, _ = await refusal(client.raw("EraseEverything", b""))

    assert code is grpc.StatusCode.UNIMPLEMENTED


async def test_a_defect_is_logged_and_told_as_an_unknown_outcome() -> None:
    async def defect() -> None:
        raise ZeroDivisionError("a defect")

    async with line() as client:
        client.store.meanwhile.append(defect)
        with capture_logs() as logged:
            code, message, details = await refusal(client.stub.CreateAction(a_create("a")))

    assert code is grpc.StatusCode.UNAVAILABLE
    assert "ZeroDivisionError" not in message
    assert details == [ErrorInfo(reason="OUTCOME_UNKNOWN", domain="clepsydra")]
    assert [(entry["method"], entry["log_level"]) for entry in logged] == [("CreateAction", "error")]


async def test_a_call_past_its_deadline_is_not_written() -> None:
    async with line(batches_in_flight=1) as client:
        client.store.held_up = asyncio.Event()
        first = asyncio.ensure_future(client.stub.CreateAction(a_create("first")))
        await until(lambda: client.store.under_way == 1)

        code, _, _ = await refusal(client.stub.CreateAction(a_create("late"), timeout=0.05))
        client.store.held_up.set()
        await first
        await client.stub.CreateAction(a_create("last"))

    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert set(client.store.actions) == {"first", "last"}


class HandlerCallDetails(grpc.HandlerCallDetails):
    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata = ()


class Hurried:
    """A call as gRPC describes it, whose time is up but which has not been cancelled yet."""

    code: grpc.StatusCode | None = None

    def __init__(self, request: bytes) -> None:
        self._request = request

    async def read(self) -> bytes:
        return self._request

    def time_remaining(self) -> float:
        return 0.0

    def set_code(self, code: grpc.StatusCode) -> None:
        self.code = code

    def set_details(self, details: str) -> None: ...

    def set_trailing_metadata(self, metadata: Any) -> None: ...


async def test_nor_if_grpc_is_slow_to_tell() -> None:
    clock = SystemClock()
    store = LineToStore(clock)
    settings = SchedulerSettings()
    reception = Reception(ReceptionBounds(1, 1, 1), Connections(0))
    handlers = Endpoint(Scheduler(store, clock, Ids.from_system(), settings), settings, reception).handlers()
    create: Any = handlers.service(HandlerCallDetails(f"/{SERVICE.full_name}/CreateAction"))
    context = Hurried(a_create("a").SerializeToString())

    await create.stream_unary(None, context)

    assert context.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert store.actions == {}


async def test_too_many_calls_are_refused_but_health_is_answered() -> None:
    async with line(max_concurrent_calls=1) as client:
        client.store.held_up = asyncio.Event()
        first = asyncio.ensure_future(client.stub.CreateAction(a_create("a")))
        await until(lambda: client.store.under_way == 1)

        code, _, details = await refusal(client.stub.CreateAction(a_create("b")))
        health = await client.health.Check(health_pb2.HealthCheckRequest())
        client.store.held_up.set()
        await first
        await client.stub.CreateAction(a_create("c"))

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert details == [ErrorInfo(reason="OVERLOADED", domain="clepsydra")]
    assert health.status == SERVING
    assert set(client.store.actions) == {"a", "c"}


async def test_health_is_served_for_the_service_and_for_the_server() -> None:
    async with line() as client:
        for name in ("", SERVICE.full_name):
            answer = await client.health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == SERVING


async def test_reflection_tells_what_is_served() -> None:
    async with line() as client:
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(client.channel)
        asked = reflection.ServerReflectionInfo()
        await asked.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        services = {service.name for service in (await asked.read()).list_services_response.service}
        await asked.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE.full_name))
        described = (await asked.read()).file_descriptor_response.file_descriptor_proto
        await asked.done_writing()

    assert {SERVICE.full_name, "grpc.health.v1.Health"} <= services
    assert scheduler_pb2.DESCRIPTOR.serialized_pb in described


async def test_a_stop_finishes_what_was_accepted_and_accepts_nothing_more() -> None:
    async with line() as client:
        watch = aiter(client.health.Watch(health_pb2.HealthCheckRequest()))
        assert (await anext(watch)).status == SERVING
        client.store.held_up = asyncio.Event()
        accepted = asyncio.ensure_future(client.stub.CreateAction(a_create("a")))
        await until(lambda: client.store.under_way == 1)

        stopping = asyncio.ensure_future(client.server.stop(60))
        seen = [answer.status async for answer in watch]
        code, _, _ = await refusal(client.stub.CreateAction(a_create("b")))
        assert not stopping.done()
        client.store.held_up.set()
        assert (await accepted).meta.id == "a"
        await stopping
        await client.server.wait()

    assert seen in ([NOT_SERVING], [])
    assert code is grpc.StatusCode.UNAVAILABLE
    assert set(client.store.actions) == {"a"}


async def test_a_stop_waits_no_longer_than_its_grace_even_for_a_store_that_hangs() -> None:
    async with line() as client:
        client.store.held_up = asyncio.Event()
        stuck = asyncio.ensure_future(client.stub.CreateAction(a_create("a")))
        await until(lambda: client.store.under_way == 1)

        with capture_logs() as logged:
            await client.server.stop(0.01)
        code, _, _ = await refusal(stuck)
        client.store.held_up.set()

    assert code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert [entry["log_level"] for entry in logged] == ["warning"]


async def test_a_taken_address_is_told_in_a_sentence() -> None:
    async with line() as client:
        taken = SchedulerSettings(listen=client.server.address)
        store = LineToStore(SystemClock())
        with pytest.raises(CannotListen, match=f"cannot listen on {client.server.address}"):
            await serve(Scheduler(store, SystemClock(), Ids.from_system(), taken), taken)


CERTIFICATE = Path(__file__).parent / "localhost.pem"


async def test_it_speaks_tls_when_it_is_given_a_certificate() -> None:
    credentials = grpc.ssl_channel_credentials(CERTIFICATE.read_bytes())
    async with (
        line(tls_cert_file=CERTIFICATE, tls_key_file=CERTIFICATE) as client,
        grpc.aio.secure_channel(f"localhost:{client.server.port}", credentials) as channel,
    ):
        created = await stub_of(channel).CreateAction(a_create("a"))

    assert created.meta.id == "a"


async def test_a_certificate_that_cannot_be_read_is_told_in_a_sentence(tmp_path: Path) -> None:
    missing = SchedulerSettings(
        listen="127.0.0.1:0", tls_cert_file=tmp_path / "missing.pem", tls_key_file=tmp_path / "missing.key"
    )
    store = LineToStore(SystemClock())
    with pytest.raises(CannotListen, match="certificate"):
        await serve(Scheduler(store, SystemClock(), Ids.from_system(), missing), missing)
