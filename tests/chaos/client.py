"""A client process: creates actions in batches and one by one, changes some of them, and writes down what it was told.

It may be killed at any time. Started again, it learns from its history how much is left to do; what it had begun
before stays as it was, with an unknown outcome where no answer was written down.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchDeleteActionsRequest,
    CreateActionRequest,
    DeleteActionRequest,
    UpdateActionRequest,
)
from tests.chaos.caller import Answer, Caller
from tests.chaos.history import Call, HistoryWriter, Kind, Outcome, read_history
from tests.chaos.workload import Intention, Workload

_LANES = 4
_BATCH_MAX = 60
_LOOK_S = 0.05


class Client:
    def __init__(self, name: str, servers: Sequence[str], folder: Path, quota: int, seed: int) -> None:
        past = read_history([history_path(folder, name)])
        self._name = f"{name}.{past.beginnings}"
        self._chance = random.Random(f"{seed} {self._name}")
        self._workload = Workload(self._chance, self._name)
        self._caller = Caller(servers)
        self._history = HistoryWriter(history_path(folder, name))
        self._allowance = allowance_path(folder, name)
        self._quota = quota
        # Acknowledged, or on their way: a client does not know of more than it may need.
        self._created = past.acknowledged_creations
        self._calls = 0
        self._later: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        self._history.began()
        await asyncio.gather(*(self._lane() for _ in range(_LANES)))
        while self._later:
            await asyncio.gather(*self._later)
        await self._caller.close()
        self._history.close()

    async def _lane(self) -> None:
        while self._created < self._quota:
            room = min(self._quota, allowed(self._allowance)) - self._created
            if room <= 0:
                await asyncio.sleep(_LOOK_S)
                continue
            size = min(room, 1 if self._chance.random() < 0.3 else self._chance.randint(2, _BATCH_MAX))
            self._created += size
            acknowledged = await self._create([self._workload.intend(_now_us()) for _ in range(size)])
            self._created -= size - acknowledged

    async def _create(self, intentions: list[Intention]) -> int:
        """Returns how many were acknowledged."""
        calls = [self._call(Kind.CREATE, each.action.meta.id, each.due_us, each.runs) for each in intentions]
        requests = [
            CreateActionRequest(action=each.action, request_id=call.request_id)
            for each, call in zip(intentions, calls, strict=True)
        ]
        self._history.invoked(calls)
        if len(requests) == 1:
            answers = [await self._caller.call("CreateAction", requests[0])]
        else:
            answers = await self._caller.call_batch("BatchCreateActions", BatchCreateActionsRequest, requests)
        self._end(calls, answers)
        for intention, call, request in zip(intentions, calls, requests, strict=True):
            if call.outcome is Outcome.OK:
                self._go_on(intention, call, request)
        return sum(call.outcome is Outcome.OK for call in calls)

    def _go_on(self, intention: Intention, call: Call, request: CreateActionRequest) -> None:
        if intention.update_after_s is not None or intention.delete_after_s is not None:
            self._start(self._change(intention))
        if intention.replay_after_s is not None:
            self._start(self._replay(call, request, intention.replay_after_s))

    async def _change(self, intention: Intention) -> None:
        """One change after the other: after an unknown outcome, the action is left alone."""
        action_id = intention.action.meta.id
        if intention.update_after_s is not None:
            await asyncio.sleep(intention.update_after_s)
            if await self._update(action_id) is not Outcome.OK:
                return
        if intention.delete_after_s is not None:
            await asyncio.sleep(intention.delete_after_s)
            await self._delete(action_id)

    async def _update(self, action_id: str) -> Outcome:
        spec, due_us, runs = self._workload.spec(_now_us())
        call = self._call(Kind.UPDATE, action_id, due_us, runs)
        request = UpdateActionRequest(request_id=call.request_id)
        request.action.meta.id = action_id
        request.action.spec.CopyFrom(spec)
        self._history.invoked([call])
        self._end([call], [await self._caller.call("UpdateAction", request)])
        return call.outcome

    async def _delete(self, action_id: str) -> None:
        call = self._call(Kind.DELETE, action_id)
        request = DeleteActionRequest(id=action_id, request_id=call.request_id)
        self._history.invoked([call])
        if self._chance.random() < 0.5:
            answer = await self._caller.call("DeleteAction", request)
        else:
            [answer] = await self._caller.call_batch("BatchDeleteActions", BatchDeleteActionsRequest, [request])
        self._end([call], [answer])

    async def _replay(self, call: Call, request: CreateActionRequest, after_s: float) -> None:
        await asyncio.sleep(after_s)
        answer = await self._caller.try_once("CreateAction", request)
        if answer.outcome is Outcome.OK:
            self._history.replayed(call, answer.response.meta.guid)

    def _call(self, kind: Kind, action_id: str, due_us: int = 0, runs: int = 0) -> Call:
        self._calls += 1
        return Call(f"{self._name}#{self._calls}", kind, action_id, _now_us(), due_us, runs)

    def _end(self, calls: Sequence[Call], answers: Sequence[tuple[Answer, int]]) -> None:
        now_us = _now_us()
        for call, (answer, tries) in zip(calls, answers, strict=True):
            call.outcome, call.error, call.tries, call.ended_us = answer.outcome, answer.error, tries, now_us
            if answer.outcome is Outcome.OK and call.kind is not Kind.DELETE:
                call.guid = getattr(answer.response, "action", answer.response).meta.guid
        self._history.ended(calls)

    def _start(self, later: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(later)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def history_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.history"


def allowance_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.allowance"


def allow(path: Path, creations: int) -> None:
    """Let a client create so many actions in all, by now."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(str(creations))
    fresh.replace(path)


def allowed(path: Path) -> int:
    return int(path.read_text()) if path.exists() else 0


def _now_us() -> int:
    return time.time_ns() // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--servers", required=True, help="addresses of schedulers, with commas between")
    parser.add_argument("--folder", type=Path, required=True, help="where the history and the allowance are")
    parser.add_argument("--quota", type=int, required=True, help="actions to have acknowledged")
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    asyncio.run(_run(given))


async def _run(given: argparse.Namespace) -> None:
    # A channel belongs to the event loop in which it is made.
    await Client(given.name, given.servers.split(","), given.folder, given.quota, given.seed).run()


if __name__ == "__main__":
    main()
