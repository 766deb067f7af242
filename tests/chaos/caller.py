"""How a client calls: on a doubtful answer, the same call again, at the next scheduler, until it knows."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.chaos.history import Outcome

CALL_TIMEOUT_S = 5.0
# Far longer than any fault lasts.
TIMEOUT_S = 60.0
_PAUSE_S = 0.1

# A channel that lost its scheduler looks for it again soon, and not after gRPC's two minutes.
OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]

_FOR_GOOD = frozenset(
    {
        code_pb2.INVALID_ARGUMENT,
        code_pb2.NOT_FOUND,
        code_pb2.ALREADY_EXISTS,
        code_pb2.ABORTED,
        code_pb2.FAILED_PRECONDITION,
        code_pb2.OUT_OF_RANGE,
        code_pb2.UNIMPLEMENTED,
        code_pb2.DATA_LOSS,
    }
)


class Answer(NamedTuple):
    outcome: Outcome
    response: Any
    error: str


class CallState:
    """What is known of one call after some tries: one doubtful answer makes every later "not done" doubtful too."""

    def __init__(self) -> None:
        self.tries = 0
        self._in_doubt = False

    def hear(self, answer: Answer) -> Answer:
        self.tries += 1
        self._in_doubt = self._in_doubt or answer.outcome is Outcome.UNKNOWN
        if answer.outcome is Outcome.NOT_DONE and self._in_doubt:
            return answer._replace(outcome=Outcome.UNKNOWN)
        return answer

    @staticmethod
    def is_settled(answer: Answer) -> bool:
        return answer.outcome in (Outcome.OK, Outcome.REFUSED)


class Caller:
    """Calls schedulers in turn."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._channels = [grpc.aio.insecure_channel(server, options=OPTIONS) for server in servers]
        self._stubs = [SchedulerServiceStub(channel) for channel in self._channels]  # type: ignore[no-untyped-call]
        self._turn = 0

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close(None)

    async def call(self, method: str, request: Any) -> tuple[Answer, int]:
        """What became of a call in the end, and how many tries it took."""
        state = CallState()
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            answer = state.hear(await self.try_once(method, request))
            if state.is_settled(answer) or time.monotonic() > deadline_s:
                return answer, state.tries
            await asyncio.sleep(_PAUSE_S)

    async def call_batch(self, method: str, batch_type: Any, requests: Sequence[Any]) -> list[tuple[Answer, int]]:
        """The same for the items of a batch; only those in doubt are sent again."""
        states = [CallState() for _ in requests]
        answers: list[Answer] = [Answer(Outcome.NOT_DONE, None, "never sent")] * len(requests)
        open_items = list(range(len(requests)))
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            batch = batch_type(requests=[requests[n] for n in open_items])
            whole = await self.try_once(method, batch)
            for place, n in enumerate(open_items):
                answers[n] = states[n].hear(item_of(whole, place))
            open_items = [n for n in open_items if not CallState.is_settled(answers[n])]
            if not open_items or time.monotonic() > deadline_s:
                return [(answer, state.tries) for answer, state in zip(answers, states, strict=True)]
            await asyncio.sleep(_PAUSE_S)

    async def try_once(self, method: str, request: Any) -> Answer:
        self._turn += 1
        stub = self._stubs[self._turn % len(self._stubs)]
        try:
            response = await getattr(stub, method)(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            return _answer_of_error(error)
        return Answer(Outcome.OK, response, "")


def _answer_of_error(error: Any) -> Answer:
    status = rpc_status.from_call(error)
    if status is not None:
        return _answer_of_status(status)
    # Not a scheduler's word, but the connection's: anything may have happened.
    return Answer(Outcome.UNKNOWN, None, f"{error.code().name}: {error.details()}")


def _answer_of_status(status: status_pb2.Status) -> Answer:
    info = error_details_pb2.ErrorInfo()
    return _answer_of(status.code, status.message, {info.reason for detail in status.details if detail.Unpack(info)})


def _answer_of(code: int, message: str, reasons: set[str]) -> Answer:
    text = f"{code_pb2.Code.Name(code)}: {message}"
    if code in _FOR_GOOD:
        return Answer(Outcome.REFUSED, None, text)
    certain = bool(reasons & {"NOT_DONE", "OVERLOADED"})
    return Answer(Outcome.NOT_DONE if certain else Outcome.UNKNOWN, None, text)


def item_of(whole: Answer, place: int) -> Answer:
    if whole.outcome is not Outcome.OK:
        return whole
    result = whole.response.results[place]
    if result.HasField("error"):
        return _answer_of(result.error.code, result.error.message, {result.error.reason})
    return Answer(Outcome.OK, result, "")
