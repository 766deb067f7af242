"""The order of changes that hit one action: while one is under way, further ones wait, and are then put as one chain.

Without it, all but one of the changes that were planned from the same state would conflict, be planned again, and
conflict again. Changes of other actions are not held up. A change that is alone is carried out by its own caller.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from clepsydra.core.clock import Clock
from clepsydra.core.limits import RECENT_REQUESTS
from clepsydra.scheduler.errors import DeadlinePassed, Overloaded
from clepsydra.scheduler.writes.call import Call
from clepsydra.scheduler.writes.chain import Chain

# An action remembers this many calls of the last seconds: so each call of a chain can be repeated.
_LINKS_MAX = RECENT_REQUESTS

CarryOut = Callable[[Sequence[Call], int | None], Awaitable[None]]


class _Waiting(NamedTuple):
    call: Call
    deadline_us: int | None
    # Done when the call has its outcome; cancelled if its caller stops waiting.
    settled: asyncio.Future[None]


class ActionQueues:
    """`carry_out` gives each of the calls an outcome, and must name an action at most once."""

    def __init__(self, carry_out: CarryOut, clock: Clock, waiting_max: int) -> None:
        self._carry_out = carry_out
        self._clock = clock
        self._waiting_max = waiting_max
        self._waiting = 0
        # The actions that are being changed, and the changes that wait for that.
        self._queues: dict[str, deque[_Waiting]] = {}
        self._chains: set[asyncio.Task[None]] = set()

    async def change(self, calls: Sequence[Call], deadline_us: int | None) -> None:
        """Give each of the calls an outcome. A caller that stops waiting takes back those that wait."""
        by_action: dict[str, list[Call]] = {}
        for call in calls:
            by_action.setdefault(call.mutation.action_id, []).append(call)
        free = [action_id for action_id in by_action if action_id not in self._queues]
        waiting = [
            self._enqueue(call, deadline_us)
            for action_id, each in by_action.items()
            if action_id in self._queues
            for call in each
        ]
        self._queues.update((action_id, deque()) for action_id in free)
        try:
            await self._change_at_once([by_action[action_id] for action_id in free], deadline_us)
        finally:
            for action_id in free:
                self._go_on(action_id)
        if waiting:
            await asyncio.gather(*waiting)

    async def idle(self) -> None:
        """Return when nothing waits."""
        while self._chains:
            await asyncio.wait(self._chains)

    def _enqueue(self, call: Call, deadline_us: int | None) -> asyncio.Future[None]:
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._waiting >= self._waiting_max:
            call.fail(Overloaded("the scheduler has too many changes of this action to write already: try again later"))
            settled.set_result(None)
        else:
            self._waiting += 1
            self._queues[call.mutation.action_id].append(_Waiting(call, deadline_us, settled))
        return settled

    async def _change_at_once(self, groups: Sequence[Sequence[Call]], deadline_us: int | None) -> None:
        """Carry out the calls, those of one action as a chain."""
        singles = [calls[0] for calls in groups if len(calls) == 1]
        chains = [Chain(calls) for calls in groups if len(calls) > 1]
        if groups:
            await self._carry_out([*singles, *chains], deadline_us)
        for chain in chains:
            chain.distribute()

    def _go_on(self, action_id: str) -> None:
        """A change of the action has ended: carry out those that wait, beside all callers."""
        if not self._queues[action_id]:
            del self._queues[action_id]
            return
        task = asyncio.get_running_loop().create_task(self._change_waiting(action_id))
        self._chains.add(task)
        task.add_done_callback(self._chains.discard)

    async def _change_waiting(self, action_id: str) -> None:
        queue = self._queues[action_id]
        try:
            while queue:
                taken = [queue.popleft() for _ in range(min(len(queue), _LINKS_MAX))]
                self._waiting -= len(taken)
                wanted = [each for each in taken if self._is_wanted(each)]
                if wanted:
                    await self._change_together(wanted)
        finally:
            self._go_on(action_id)

    async def _change_together(self, wanted: Sequence[_Waiting]) -> None:
        deadline_us = wanted[0].deadline_us if len(wanted) == 1 else None
        try:
            await self._change_at_once([[each.call for each in wanted]], deadline_us)
        except Exception as error:  # noqa: BLE001  # each caller judges it
            for each in wanted:
                if not each.settled.done():
                    each.settled.set_exception(error)
        for each in wanted:
            if not each.settled.done():
                each.settled.set_result(None)

    def _is_wanted(self, waiting: _Waiting) -> bool:
        call, deadline_us, settled = waiting
        if not settled.done() and deadline_us is not None and deadline_us <= self._clock.monotonic_us():
            call.fail(DeadlinePassed("the call's deadline passed before it was sent to the store"))
            settled.set_result(None)
        return not settled.done()
