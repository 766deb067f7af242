"""Calls by the thousand to a real server on SQLite, each judged, and the store looked at after each."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import starmap
from pathlib import Path
from typing import Any

import apsw
import grpc
from grpc_status import rpc_status

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.api.endpoint import SERVICE
from clepsydra.scheduler.api.server import serve
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.sqlite import SqliteStore
from clepsydra.v1 import action_pb2, scheduler_pb2
from clepsydra.v1.scheduler_pb2 import GetActionRequest, ListActionsRequest
from tests.fuzz.bending import bent
from tests.fuzz.sound import Requests
from tests.fuzz.verdicts import Answer, Call, Wrong, judge, may_write, must_write

_SHOWN = 400
_LOOK_EVERY = 100


class Campaign:
    """A client that goes wrong on purpose, and a witness who looks at the tables."""

    def __init__(self, channel: Any, witness: "Witness", seed: int) -> None:
        self._channel = channel
        self._witness = witness
        self._seed = seed
        self._etags: dict[str, str] = {}
        # How many calls of each method were answered how.
        self.answers: Counter[tuple[str, str]] = Counter()
        self.writes = 0

    async def run(self, calls: int, progress: Callable[[int], None] = lambda _: None) -> None:
        done = looked = 0
        while done < calls:
            # Most calls come alone. Some come at once, and are written together: none may spoil the others.
            size = min(random.Random(f"{self._seed} group {done}").choice([1, 1, 1, 8]), calls - done)
            await self._some(range(done, done + size))
            done += size
            if done - looked >= _LOOK_EVERY:
                looked = done
                await self._plain_calls()
                progress(done)
        await self._plain_calls()

    async def _some(self, numbers: range) -> None:
        calls = [self._call(number) for number in numbers]
        answers = await asyncio.gather(*map(self._answer, calls))
        has_written = self._witness.has_seen_a_write()
        self.writes += has_written
        for number, call, answer in zip(numbers, calls, answers, strict=True):
            self.answers[call.method, answer.code] += 1
            try:
                judge(call, answer)
            except Wrong as wrong:
                raise Wrong(_told(self._seed, number, call, answer, str(wrong))) from None
            self._remember(answer)
        pairs = list(zip(calls, answers, strict=True))
        if has_written != any(starmap(must_write, pairs)) and has_written != any(starmap(may_write, pairs)):
            told = [_told(self._seed, n, *pair, "") for n, pair in zip(numbers, pairs, strict=True)]
            raise Wrong("\n".join([f"rejected, or only looked, and written: {has_written}", *told]))

    def _call(self, number: int) -> Call:
        # Each call has a chance of its own, so that one can be looked at without the others.
        chance = random.Random(f"{self._seed} {number}")
        requests = Requests(chance, self._etags)
        method = requests.method()
        return Call(method, bent(chance, requests.to(method)))

    async def _answer(self, call: Call) -> Answer:
        try:
            raw: bytes = await self._channel.unary_unary(f"/{SERVICE.full_name}/{call.method}")(call.raw, timeout=60)
        except grpc.aio.AioRpcError as error:
            status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it takes calls of both kinds
            return Answer(error.code().name, error.details() or "", status, None)
        kind = SERVICE.methods_by_name[call.method].output_type.name
        response_type = getattr(scheduler_pb2, kind, None) or getattr(action_pb2, kind)
        return Answer("OK", "", None, response_type.FromString(raw))

    def _remember(self, answer: Answer) -> None:
        action = answer.response
        if isinstance(action, action_pb2.ScheduledAction):
            self._etags[action.meta.id] = action.meta.etag

    async def _plain_calls(self) -> None:
        """Whatever came before: a call that makes sense is answered."""
        for method, request, codes in (
            ("ListActions", ListActionsRequest(page_size=1), {"OK"}),
            ("GetAction", GetActionRequest(id="action-0"), {"OK", "NOT_FOUND"}),
        ):
            answer = await self._answer(Call(method, request.SerializeToString()))
            if answer.code not in codes:
                raise Wrong(f"after {sum(self.answers.values())} calls, {method} is answered {answer.code}")


class Witness:
    """Another connection to the store's file, which sees whether anybody has written."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.set_busy_timeout(10_000)
        self._version = self._look()

    def has_seen_a_write(self) -> bool:
        """Since it looked last."""
        before, self._version = self._version, self._look()
        return bool(self._version != before)

    def _look(self) -> Any:
        # SQLite's own count of what other connections have committed: a page that was written raises it.
        return self._connection.pragma("data_version")

    def close(self) -> None:
        self._connection.close()


@asynccontextmanager
async def campaign(folder: Path, seed: int) -> AsyncIterator[Campaign]:
    """A fresh store, a server on it, a client and a witness; at the end the store is audited."""
    path, clock = str(folder / "fuzzed.db"), SystemClock()
    await SqliteStore.install(path, 4)
    store = await SqliteStore.open(path, clock)
    settings = SchedulerSettings(listen="127.0.0.1:0")
    server = await serve(Scheduler(store, clock, Ids(random.Random(seed)), settings), settings)
    witness = Witness(path)
    try:
        async with grpc.aio.insecure_channel(server.address) as channel:
            yield Campaign(channel, witness, seed)
        await server.stop(0)
        audit = await store.audit(10)
        if audit.without_row or audit.with_several_rows:
            raise Wrong(f"the store is not sound any more: {audit}")
    finally:
        await server.stop(0)
        witness.close()
        await store.close()


def _told(seed: int, number: int, call: Call, answer: Answer, sentence: str) -> str:
    cut = "" if len(call.raw) <= _SHOWN else f" (the first {_SHOWN} of {len(call.raw):,} bytes)"
    return (
        f"{sentence}\n"
        f"call {number} of seed {seed}: {call.method}\n"
        f"request{cut}: {call.raw[:_SHOWN].hex()}\n"
        f"which reads: {str(call.parsed())[: 2 * _SHOWN]}\n"
        f"answer: {answer.code} {answer.message}\n{answer.status or ''}{answer.response or ''}"
    )
