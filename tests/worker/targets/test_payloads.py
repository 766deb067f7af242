"""What a payload becomes, by the annotation of the parameter that takes it."""

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from clepsydra.core.action.attempt import SUCCESS
from clepsydra.v1.action_pb2 import Attempt, LogLine
from clepsydra.worker import Registry
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import execute, handled_by


class Order(BaseModel):
    number: int
    lines: list[str] = []


@dataclass
class Point:
    x: int
    y: int


class Named(TypedDict):
    name: str


LINE = LogLine(message="grün")
NESTED = b"[" * 100_000

DECODED: list[tuple[Any, bytes, str, Any]] = [
    (None, b"\xff\x00", "image/png", b"\xff\x00"),
    (bytes, b"\xff\x00", "", b"\xff\x00"),
    (str, "grün".encode(), "", "grün"),
    (str, b"", "", ""),
    (LogLine, LINE.SerializeToString(), "", LINE),
    (LogLine, LINE.SerializeToString(), "application/x-protobuf", LINE),
    (LogLine, LINE.SerializeToString(), "Application/Protobuf; messageType=LogLine", LINE),
    (LogLine, b"", "", LogLine()),
    (LogLine, b'{"message": "gr\xc3\xbcn"}', "application/json; charset=utf-8", LINE),
    (LogLine, b'{"message": "gr\xc3\xbcn"}', "application/vnd.line+json", LINE),
    (Timestamp, b'"1970-01-01T00:00:05Z"', "application/json", Timestamp(seconds=5)),
    (Order, b'{"number": 7}', "application/json", Order(number=7)),
    (Order, b'{"number": 7}', "", Order(number=7)),
    (dict, b'{"a": [1, null]}', "", {"a": [1, None]}),
    (dict[str, int], b'{"a": 1}', "", {"a": 1}),
    (list[Order], b'[{"number": 1}]', "", [Order(number=1)]),
    (Any, b"1.5", "", 1.5),
    (int, b"12", "", 12),
    (Point, b'{"x": 1, "y": 2}', "", Point(1, 2)),
    (Named, b'{"name": "a"}', "", {"name": "a"}),
    (Order | None, b"null", "", None),
]


def taking(registry: Registry, annotation: Any, taken: list[Any]) -> None:
    async def take(payload: Any) -> None:
        taken.append(payload)

    take.__annotations__ = {} if annotation is None else {"payload": annotation}
    registry.handler("take")(take)


@pytest.mark.parametrize(("annotation", "payload", "content_type", "expected"), DECODED)
async def test_a_payload_is_decoded_by_the_annotation(
    targets: Targets, registry: Registry, annotation: Any, payload: bytes, content_type: str, expected: Any
) -> None:
    taken: list[Any] = []
    taking(registry, annotation, taken)
    assert await execute(targets, handled_by("take", payload, content_type)) == SUCCESS
    assert taken == [expected]
    assert type(taken[0]) is type(expected)


UNDECODABLE: list[tuple[Any, bytes, str, str]] = [
    (str, b"ab\xff", "", "it is not UTF-8 text: invalid start byte at byte 2"),
    (LogLine, b"\xff", "", "it is not a clepsydra.v1.LogLine: "),
    (LogLine, b'{"message"', "application/json", "it is not a clepsydra.v1.LogLine: "),
    (LogLine, b'{"massage": ""}', "application/json", "it is not a clepsydra.v1.LogLine: "),
    (LogLine, b'"\xff"', "application/json", "it is not a clepsydra.v1.LogLine: "),
    (Struct, b'{"a":' + NESTED, "application/json", "it is not a google.protobuf.Struct: "),
    (LogLine, b"", "text/plain", "its content type is text/plain; a clepsydra.v1.LogLine is read from "),
    (Order, b"", "", "it does not fit Order: Invalid JSON"),
    (Order, b"{}", "", "it does not fit Order: number: Field required"),
    (Order, b'{"number": "secret"}', "", "it does not fit Order: number: Input should be a valid integer"),
    (Order, b'{"number": 1, "lines": [1, 2, 3, 4, 5]}', "", "it does not fit Order: lines.0: "),
    (dict, b"[]", "", "it does not fit dict[any,any]: Input should be an object"),
    (Any, NESTED, "", "it does not fit any: Invalid JSON"),
]


@pytest.mark.parametrize(("annotation", "payload", "content_type", "reason"), UNDECODABLE)
async def test_a_payload_that_does_not_fit_fails_for_good(
    targets: Targets, registry: Registry, annotation: Any, payload: bytes, content_type: str, reason: str
) -> None:
    taken: list[Any] = []
    taking(registry, annotation, taken)
    result = await execute(targets, handled_by("take", payload, content_type))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, False)
    assert result.error.startswith(f"the payload cannot be decoded: {reason}")
    assert "secret" not in result.error
    assert taken == []


async def test_of_many_misfits_a_few_are_told(targets: Targets, registry: Registry) -> None:
    taking(registry, list[int], [])
    result = await execute(targets, handled_by("take", b'["a", "b", "c", "d", "e"]'))
    assert result.error.count("valid integer") == 3
    assert result.error.endswith("; and 2 more")


async def test_a_function_in_a_thread_is_given_the_same(targets: Targets, registry: Registry) -> None:
    taken = []

    @registry.handler("take")
    def take(order: Order) -> None:
        taken.append(order)

    assert await execute(targets, handled_by("take", b'{"number": 7}')) == SUCCESS
    assert taken == [Order(number=7)]
    result = await execute(targets, handled_by("take", b"{}"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, False)


async def test_trouble_inside_a_validator_is_not_the_payloads_fault(targets: Targets, registry: Registry) -> None:
    class Checked(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_known(cls, _number: int) -> int:
            raise ConnectionError("no database")

    @registry.handler("take")
    async def take(payload: Checked) -> None: ...

    result = await execute(targets, handled_by("take", b'{"number": 7}'))
    assert (result.retryable, result.error) == (True, "ConnectionError: no database")
    assert isinstance(result.cause, ConnectionError)
