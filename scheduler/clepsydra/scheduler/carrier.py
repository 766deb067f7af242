"""Carries changes into the store: look, propose, put, hear, and again until each has its outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.errors import InvalidArgument, SchedulerError, StoreUnavailable
from clepsydra.scheduler.fate import Call
from clepsydra.scheduler.gathering import Bounds, Gathering
from clepsydra.scheduler.patience import TRIES, pause_s
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.port import Action, Put, PutResult, Store

Read = TypeVar("Read")


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

    async def carry_out(self, call: Call) -> None:
        """Give a call its outcome."""
        propose_blindly(call)
        if call.is_unproposed:
            await self._look_and_propose([call])
        while call.outcome is None:
            result = await self._puts.add(_put_of(call), call.deadline_us)
            call.hear(result, self._clock.now_us())
            if call.failures and call.outcome is None:
                await self._pause(call.failures)

    async def carry_out_all(self, calls: Sequence[Call], deadline_us: int | None) -> None:
        """Give each of many calls of one caller its outcome, side by side; what can be was proposed blindly."""
        unproposed = [call for call in calls if call.is_unproposed]
        if unproposed:
            await self._look_and_propose(unproposed)
        while on_their_way := [call for call in calls if call.outcome is None]:
            results = await self._puts.add_all([_put_of(call) for call in on_their_way], deadline_us)
            now_us = self._clock.now_us()
            for call, result in zip(on_their_way, results, strict=True):
                call.hear(result, now_us)
            failures = max(call.failures for call in on_their_way)
            if failures:
                await self._pause(failures)

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

    async def _look_and_propose(self, calls: Sequence[Call]) -> None:
        try:
            seen = await self.look([call.change.action_id for call in calls], calls[0].deadline_us)
        except SchedulerError as error:
            for call in calls:
                call.fail(error)
            return
        for call, current in zip(calls, seen, strict=True):
            call.propose(current)

    async def _pause(self, failures: int) -> None:
        await asyncio.sleep(pause_s(failures, self._ids.fraction()))

    async def _get(self, action_ids: Sequence[str]) -> list[Action | None]:
        """Many may ask for the same action at once."""
        named = list(dict.fromkeys(action_ids))
        found = dict(zip(named, await self._store.get(named), strict=True))
        return [found[action_id] for action_id in action_ids]


def propose_blindly(call: Call) -> None:
    """Most creations need no look: that nothing is there is what they expect."""
    if call.change.blind:
        call.propose(None)
        if isinstance(call.outcome, InvalidArgument):
            # A replay is answered as the first call was, even if by now the request would be refused.
            call.outcome = None


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
