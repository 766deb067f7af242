"""Carries changes into the store: look, propose, put, hear, and again until each has its outcome.

What can be done for many calls in one stretch is: they are proposed when the batch that takes them along is made up,
and not one by one as they come in, because the same steps take less time when they are done in a row.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.errors import SchedulerError, StoreUnavailable
from clepsydra.scheduler.fate import Call
from clepsydra.scheduler.gathering import Bounds, Gathering
from clepsydra.scheduler.patience import TRIES, pause_s
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.scheduler.usual import usual_among
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.port import Action, Put, PutResult, Store

Read = TypeVar("Read")

# A large batch lets others run after this many calls.
_CALLS_AT_A_STRETCH = 100


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
        self._puts: Gathering[Call, Exception | None] = Gathering(
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
            _hear_refusal(call, await self._puts.add(call, call.deadline_us))
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
            for call, refusal in zip(on_their_way, await self._puts.add_all(on_their_way, deadline_us), strict=True):
                _hear_refusal(call, refusal)
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

    async def _put(self, calls: Sequence[Call]) -> list[Exception | None]:
        """Send a batch on its way, and tell each call what became of it. A defect that one meets is its own."""
        defects: dict[Call, Exception] = {}
        for start in range(0, len(calls), _CALLS_AT_A_STRETCH):
            stretch = calls[start : start + _CALLS_AT_A_STRETCH]
            _begin_all([call for call in stretch if call.put is None], defects)
            if len(stretch) == _CALLS_AT_A_STRETCH:
                await asyncio.sleep(0)
        sent = [call for call in calls if call.put is not None and call.outcome is None]
        if sent:
            results = await self._results_of([call.put for call in sent if call.put is not None])
            now_us = self._clock.now_us()
            for call, result in zip(sent, results, strict=True):
                try:
                    call.hear(result, now_us)
                except Exception as defect:  # noqa: BLE001  # whoever waits for the call is told
                    defects[call] = defect
        return [defects.get(call) for call in calls]

    async def _results_of(self, puts: Sequence[Put]) -> Sequence[PutResult | StoreError]:
        try:
            return await self._store.put(puts)
        except StoreError as error:
            return [error] * len(puts)

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


def _found(result: Action | Exception | None) -> Action | None:
    if isinstance(result, Exception):
        raise result
    return result


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


def _hear_refusal(call: Call, refusal: Exception | None) -> None:
    """What was not sent, because there was no room or no time for it; or what a defect kept from its outcome."""
    if isinstance(refusal, SchedulerError):
        call.fail(refusal)
    elif refusal is not None:
        raise refusal


def _name_of(call: Call) -> str:
    return call.change.action_id


def _size_of(call: Call) -> int:
    """As it will be stored, or, while that is not known, as it came."""
    if call.put is None:
        size: int = call.change.request.ByteSize()
        return size
    action = call.put.action
    return len(action.meta) + len(action.spec) + len(action.status)
