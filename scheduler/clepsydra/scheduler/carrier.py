"""Carries changes into the store: look, propose, put, hear, and again until each has its outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.errors import InvalidArgument, SchedulerError, StoreUnavailable
from clepsydra.scheduler.fate import Call
from clepsydra.scheduler.gathering import Bounds, Gathering, all_of
from clepsydra.scheduler.patience import TRIES, pause_s
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.port import Action, Put, PutResult, Store

Read = TypeVar("Read")

# A large batch lets others run after this many items.
ITEMS_AT_A_STRETCH = 100


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
        self._puts: Gathering[Put, PutResult] = Gathering(
            store.put, name_of=_name_of, size_of=_size_of, bounds=bounds, clock=clock
        )
        self._looks: Gathering[str, Action | None] = Gathering(
            self._get, name_of=None, size_of=len, bounds=bounds, clock=clock
        )

    async def carry_out(self, calls: Sequence[Call]) -> None:
        """Give each call its outcome."""
        await self._propose(calls)
        on_their_way = [call for call in calls if call.outcome is None]
        while on_their_way:
            results = await all_of([self._puts.add(_put_of(call), call.deadline_us) for call in on_their_way])
            now_us = self._clock.now_us()
            for call, result in zip(on_their_way, results, strict=True):
                call.hear(result, now_us)
            on_their_way = [call for call in on_their_way if call.outcome is None]
            failures = max((call.failures for call in on_their_way), default=0)
            if failures:
                await asyncio.sleep(pause_s(failures, self._ids.fraction()))

    async def look(self, action_ids: Sequence[str], deadline_us: int | None) -> list[Action | None]:
        """What the store has of these actions."""

        async def look() -> list[Action | None]:
            looks = await all_of([self._looks.add(action_id, deadline_us) for action_id in action_ids])
            return [_found(result) for result in looks]

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
            await asyncio.sleep(pause_s(failures, self._ids.fraction()))

    async def idle(self) -> None:
        """Return when everything that was accepted has been sent and answered."""
        await self._looks.idle()
        await self._puts.idle()

    async def _propose(self, calls: Sequence[Call]) -> None:
        unseen = []
        for index, call in enumerate(calls, 1):
            if index % ITEMS_AT_A_STRETCH == 0:
                await asyncio.sleep(0)
            if call.change.blind:
                call.propose(None)
                # A replay is answered as the first call was, even if the request would be refused by now.
                if not isinstance(call.outcome, InvalidArgument):
                    continue
                call.outcome = None
            unseen.append(call)
        if unseen:
            await self._look_and_propose(unseen)

    async def _look_and_propose(self, calls: Sequence[Call]) -> None:
        try:
            seen = await self.look([call.change.action_id for call in calls], calls[0].deadline_us)
        except SchedulerError as error:
            for call in calls:
                call.fail(error)
            return
        for call, current in zip(calls, seen, strict=True):
            call.propose(current)

    async def _get(self, action_ids: Sequence[str]) -> list[Action | None]:
        """Many may ask for the same action at once."""
        named = list(dict.fromkeys(action_ids))
        found = dict(zip(named, await self._store.get(named), strict=True))
        return [found[action_id] for action_id in action_ids]


def _found(result: Action | Exception | None) -> Action | None:
    if isinstance(result, Exception):
        raise result
    return result


def _put_of(call: Call) -> Put:
    assert call.put is not None, "a call on its way has something to put"
    return call.put


def _name_of(put: Put) -> str:
    return put.action.action_id


def _size_of(put: Put) -> int:
    action = put.action
    return len(action.meta) + len(action.spec) + len(action.status)
