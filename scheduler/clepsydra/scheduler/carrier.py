"""Carries changes into the store: look, propose, put, hear, and again until each has its outcome.

What can be done for many calls in one stretch is: they are proposed when the batch that takes them along is made up,
and not one by one as they come in, because the same steps take less time when they are done in a row. Creations that
came in bulk are ready to be put by then: they go along with the calls, and become calls only if there is more to do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.changes import Create, Stamp
from clepsydra.scheduler.errors import SchedulerError, StoreUnavailable
from clepsydra.scheduler.fate import Call, Outcome
from clepsydra.scheduler.gathering import Bounds, Gathering
from clepsydra.scheduler.patience import TRIES, pause_s
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.scheduler.usual import usual_among
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.port import Action, Put, PutOutcome, PutResult, Store
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

Read = TypeVar("Read")

# A large batch lets others run after this many calls.
_CALLS_AT_A_STRETCH = 100

_DONE = PutResult(PutOutcome.DONE)


class Carrier:
    def __init__(self, store: Store, clock: Clock, ids: Ids, settings: SchedulerSettings) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        bounds = Bounds(
            settings.batch,
            settings.batch_bytes,
            settings.batches_in_flight,
            settings.pending_items,
            settings.pending_bytes,
        )
        self._puts: Gathering[Call | Put, PutResult | Exception | None] = Gathering(
            self._put, name_of=_name_of, size_of=_size_of, bounds=bounds, clock=clock
        )
        self._looks: Gathering[str, Action | None] = Gathering(
            self._get, name_of=None, size_of=len, bounds=bounds, clock=clock
        )

    async def carry_out(self, call: Call) -> None:
        """Give a call its outcome."""
        if not call.change.blind:
            call.begin()
        while call.outcome is None:
            if call.needs_look:
                await self._look_and_propose([call])
                continue
            self._hear(call, await self._puts.add(call, call.deadline_us))
            if call.failures and call.outcome is None:
                await self._pause(call.failures)

    async def carry_out_all(self, calls: Sequence[Call], deadline_us: int | None) -> None:
        """Give each of many calls of one caller its outcome, side by side."""
        for call in calls:
            if not call.change.blind:
                call.begin()
        while on_their_way := [call for call in calls if call.outcome is None]:
            unseen = [call for call in on_their_way if call.needs_look]
            if unseen:
                await self._look_and_propose(unseen)
                continue
            for call, result in zip(on_their_way, await self._puts.add_all(on_their_way, deadline_us), strict=True):
                self._hear(call, result)
            await self._pause_after_failures(on_their_way)

    async def create_all(
        self, requests: Sequence[CreateActionRequest], puts: Sequence[Put], deadline_us: int | None
    ) -> list[Outcome]:
        """What becomes of creations that are ready to be written. One that is not done at once goes on as a call."""
        outcomes: list[Outcome] = [put.action for put in puts]
        results = await self._puts.add_all(puts, deadline_us)
        if results.count(_DONE) == len(results):
            return outcomes
        calls = {n: _call_of(requests[n], puts[n], deadline_us) for n, result in enumerate(results) if result != _DONE}
        for n, call in calls.items():
            self._hear(call, results[n])
        await self._pause_after_failures(calls.values())
        await self.carry_out_all(list(calls.values()), deadline_us)
        for n, call in calls.items():
            outcomes[n] = call.settled()
        return outcomes

    async def look(self, action_ids: Sequence[str], deadline_us: int | None) -> list[Action | None]:
        """What the store has of these actions."""

        async def look() -> list[Action | None]:
            return [_found(result) for result in await self._looks.add_all(action_ids, deadline_us)]

        return await self.read(look)

    async def read(self, read: Callable[[], Awaitable[Read]]) -> Read:
        """Read with patience: a read that failed changed nothing, whatever the store says of its outcome."""
        failures = 0
        while True:
            try:
                return await read()
            except StoreError as error:
                failures += 1
                if failures >= TRIES or not isinstance(error, Unavailable | OutcomeUnknown):
                    raise StoreUnavailable(f"the store is not available: {error}") from error
            await self._pause(failures)

    async def idle(self) -> None:
        """Return when everything that was accepted has been sent and answered."""
        await self._looks.idle()
        await self._puts.idle()

    async def _put(self, items: Sequence[Call | Put]) -> Sequence[PutResult | Exception | None]:
        """Send a batch on its way.

        What becomes of a call, it is told; its result is the defect that it met, if any. A put has the store's answer.
        """
        ready = [item for item in items if isinstance(item, Put)]
        if len(ready) == len(items):
            return await self._results_of(ready)
        calls = [item for item in items if isinstance(item, Call)]
        defects = await _begin_in_stretches(calls)
        sent = [call for call in calls if call.put is not None and call.outcome is None]
        results = await self._results_of(ready + [call.put for call in sent if call.put is not None])
        now_us = self._clock.now_us()
        for call, result in zip(sent, results[len(ready) :], strict=True):
            try:
                call.hear(result, now_us)
            except Exception as defect:  # noqa: BLE001  # whoever waits for the call is told
                defects[call] = defect
        answers = iter(results)
        return [next(answers) if isinstance(item, Put) else defects.get(item) for item in items]

    async def _results_of(self, puts: Sequence[Put]) -> Sequence[PutResult | StoreError]:
        if not puts:
            return []
        try:
            return await self._store.put(puts)
        except StoreError as error:
            return [error] * len(puts)

    def _hear(self, call: Call, result: PutResult | Exception | None) -> None:
        """What the store says of a put; or what kept it from being sent, or a call from its outcome."""
        if isinstance(result, PutResult | StoreError):
            call.hear(result, self._clock.now_us())
        elif isinstance(result, SchedulerError):
            call.fail(result)
        elif result is not None:
            raise result

    async def _look_and_propose(self, calls: Sequence[Call]) -> None:
        try:
            seen = await self.look([call.change.action_id for call in calls], calls[0].deadline_us)
        except SchedulerError as error:
            for call in calls:
                call.fail(error)
            return
        for call, current in zip(calls, seen, strict=True):
            call.propose(current)

    async def _pause_after_failures(self, calls: Iterable[Call]) -> None:
        failures = max(call.failures for call in calls)
        if failures:
            await self._pause(failures)

    async def _pause(self, failures: int) -> None:
        await asyncio.sleep(pause_s(failures, self._ids.fraction()))

    async def _get(self, action_ids: Sequence[str]) -> list[Action | None]:
        """Many may ask for the same action at once."""
        named = list(dict.fromkeys(action_ids))
        found = dict(zip(named, await self._store.get(named), strict=True))
        return [found[action_id] for action_id in action_ids]


def _found(result: Action | Exception | None) -> Action | None:
    if isinstance(result, Exception):
        raise result
    return result


def _call_of(request: CreateActionRequest, put: Put, deadline_us: int | None) -> Call:
    """A creation that was put, as a call of its own."""
    assert put.shard_id is not None, "a creation is a new life"
    stamp = Stamp(put.action.guid, put.shard_id, put.created_at_us)
    return Call.under_way(Create(request, put.action.action_id, stamp), deadline_us, put)


async def _begin_in_stretches(calls: Sequence[Call]) -> dict[Call, Exception]:
    """Begin those that have not begun. A defect that one meets is its own."""
    defects: dict[Call, Exception] = {}
    for start in range(0, len(calls), _CALLS_AT_A_STRETCH):
        stretch = calls[start : start + _CALLS_AT_A_STRETCH]
        _begin_all([call for call in stretch if call.put is None], defects)
        if len(stretch) == _CALLS_AT_A_STRETCH:
            await asyncio.sleep(0)
    return defects


def _begin_all(creations: Sequence[Call], defects: dict[Call, Exception]) -> None:
    """Begin calls that need no look at the store, and keep the defects that they meet."""
    kinds = usual_among([call.change.request for call in creations])
    for call, is_usual in zip(creations, kinds, strict=True):
        try:
            if is_usual:
                call.begin_usual()
            else:
                call.begin()
        except Exception as defect:  # noqa: BLE001  # whoever waits for the call is told
            defects[call] = defect


def _name_of(item: Call | Put) -> str:
    return item.action.action_id if isinstance(item, Put) else item.change.action_id


def _size_of(item: Call | Put) -> int:
    """As it will be stored, or, while that is not known, as it came."""
    if not isinstance(item, Put):
        if item.put is None:
            size: int = item.change.request.ByteSize()
            return size
        item = item.put
    _, _, meta, spec, status, _ = item.action
    return len(meta) + len(spec) + len(status)
