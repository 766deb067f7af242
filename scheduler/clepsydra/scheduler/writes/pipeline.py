"""The write pipeline: plan, put, settle.

Creations expect to find nothing. Those of many callers that come in together are planned and put together, and nearly
all are done at once. All other changes, and creations that were not done at once, are calls of their own (`call.py`):
each is planned from the stored action and put, again until its outcome is known. Their puts share batches too. Changes
of one action that wait together are put as one chain (`action_queue.py`, `chain.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from clepsydra.core.clock import BoundedClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import seconds
from clepsydra.scheduler.errors import SchedulerError, StoreUnavailable
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.scheduler.writes.action_queue import ActionQueues
from clepsydra.scheduler.writes.batcher import Batcher, Bounds
from clepsydra.scheduler.writes.call import BACKOFF, TRIES_MAX, Call, Outcome
from clepsydra.scheduler.writes.creation_batch import CreationBatch
from clepsydra.scheduler.writes.mutations import Mutation
from clepsydra.store.errors import OutcomeUnknown, StoreError, StoreLost, Unavailable
from clepsydra.store.port import Action, Put, PutOutcome, PutResult, Store
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

Read = TypeVar("Read")

_DONE = PutResult(PutOutcome.DONE)


class WritePipeline:
    def __init__(self, store: Store, clock: BoundedClock, ids: Ids, settings: SchedulerSettings) -> None:
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
        self._creations: Batcher[CreateActionRequest, Outcome | Call] = Batcher(
            self._create, CreateActionRequest.ByteSize, bounds, clock
        )
        self._puts: Batcher[Put, PutResult | StoreError] = Batcher(self._put_distinct, _size_of, bounds, clock)
        self._looks: Batcher[str, Action | None] = Batcher(self._get, len, bounds, clock)
        self._changes = ActionQueues(self._carry_out, clock, settings.pending_items)
        self._lost: StoreLost | None = None
        self._is_lost = asyncio.Event()

    async def create(self, requests: Sequence[CreateActionRequest], deadline_us: int | None) -> list[Outcome]:
        """What becomes of each creation, in order."""
        outcomes = await self._creations.submit(requests, deadline_us)
        others = [outcome for outcome in outcomes if not isinstance(outcome, Action)]
        if not others:
            return outcomes  # type: ignore[return-value]  # all are actions
        await self._carry_out([other for other in others if isinstance(other, Call)], deadline_us)
        return [_settled(outcome) for outcome in outcomes]

    async def change(self, mutations: Sequence[Mutation], deadline_us: int | None) -> list[Outcome]:
        """What becomes of each change, in order."""
        calls = [Call(mutation) for mutation in mutations]
        await self._changes.change([call for call in calls if call.outcome is None], deadline_us)
        return [call.settled() for call in calls]

    async def look(self, action_ids: Sequence[str], deadline_us: int | None) -> list[Action | None]:
        """These actions as the store has them."""

        async def look() -> list[Action | None]:
            return [_found(result) for result in await self._looks.submit(action_ids, deadline_us)]

        return await self.read(look)

    async def read(self, read: Callable[[], Awaitable[Read]]) -> Read:
        """Read, and try again: a read that failed changed nothing, whatever the store says of its outcome."""
        failures = 0
        while True:
            try:
                return await read()
            except StoreError as error:
                self._look_for_loss(error)
                failures += 1
                if failures >= TRIES_MAX or not isinstance(error, Unavailable | OutcomeUnknown):
                    raise StoreUnavailable(f"the store is not available: {error}") from error
            await self._pause(failures)

    async def idle(self) -> None:
        """Return when everything that was accepted has been sent and answered."""
        for part in (self._changes, self._creations, self._looks, self._puts):
            await part.idle()

    async def store_lost(self) -> StoreLost:
        """Wait until the store says that this process may not use it any more."""
        await self._is_lost.wait()
        assert self._lost is not None, "it is set before the event"
        return self._lost

    def _look_for_loss(self, error: StoreError) -> None:
        if isinstance(error, StoreLost):
            self._lost = error
            self._is_lost.set()

    async def _create(self, requests: Sequence[CreateActionRequest]) -> list[Outcome | Call]:
        """Plan, put, settle: creations of many callers. What the store did not do at once becomes a call."""
        batch = CreationBatch(requests, self._ids, self._store.shards, self._clock.latest_us())
        await batch.plan()
        results = await self._put([*batch.puts.values()]) if batch.puts else []
        return batch.settle(results, self._clock.latest_us())

    async def _carry_out(self, calls: Sequence[Call], deadline_us: int | None) -> None:
        """Plan, put, settle; again until every call has its outcome."""
        while pending := [call for call in calls if call.outcome is None]:
            failures = max(call.failures for call in pending)
            if failures:
                await self._pause(failures)
            await self._look_and_plan([call for call in pending if call.put is None], deadline_us)
            sent = {call: call.put for call in pending if call.outcome is None and call.put is not None}
            results = await self._puts.submit([*sent.values()], deadline_us)
            now_us = self._clock.latest_us()
            for call, result in zip(sent, results, strict=True):
                call.settle(result, now_us)

    async def _look_and_plan(self, calls: Sequence[Call], deadline_us: int | None) -> None:
        if not calls:
            return
        try:
            stored = await self.look([call.mutation.action_id for call in calls], deadline_us)
        except SchedulerError as error:
            for call in calls:
                call.fail(error)
            return
        for call, current in zip(calls, stored, strict=True):
            call.plan(current)

    async def _put(self, puts: Sequence[Put]) -> Sequence[PutResult | StoreError]:
        try:
            return await self._store.put(puts)
        except StoreError as error:
            self._look_for_loss(error)
            return [error] * len(puts)

    async def _put_distinct(self, puts: Sequence[Put]) -> list[PutResult | StoreError]:
        """A batch names an action at most once: further puts of an action conflict with its first one."""
        firsts: dict[str, Put] = {}
        for put in puts:
            firsts.setdefault(put.action.action_id, put)
        results = dict(zip(firsts, await self._put([*firsts.values()]), strict=True))
        return [_result_of(put, firsts[put.action.action_id], results[put.action.action_id]) for put in puts]

    async def _get(self, action_ids: Sequence[str]) -> list[Action | None]:
        """Several callers may ask for the same action at once."""
        wanted = list(dict.fromkeys(action_ids))
        found = dict(zip(wanted, await self._store.get(wanted), strict=True))
        return [found[action_id] for action_id in action_ids]

    async def _pause(self, failures: int) -> None:
        await asyncio.sleep(seconds(BACKOFF.pause_us(failures, self._ids.fraction())))


def _settled(outcome: Outcome | Call | Exception) -> Outcome:
    if isinstance(outcome, Call):
        return outcome.settled()
    if isinstance(outcome, Action | SchedulerError):
        return outcome
    raise outcome


def _found(result: Action | Exception | None) -> Action | None:
    if isinstance(result, Exception):
        raise result
    return result


def _result_of(put: Put, first: Put, result: PutResult | StoreError) -> PutResult | StoreError:
    if put is first:
        return result
    if isinstance(result, StoreError) or result.outcome is PutOutcome.TOO_LATE:
        return Unavailable("it was not sent, because another change of the action failed")
    return PutResult(PutOutcome.CONFLICT, first.action if result == _DONE else result.current)


def _size_of(put: Put) -> int:
    _, _, meta, spec, status, _ = put.action
    return len(meta) + len(spec) + len(status)
