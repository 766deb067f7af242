"""A batch of creations of many callers: what to put at once, and what becomes of each."""

import asyncio
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any

from clepsydra.core.action.creation import action_id_of
from clepsydra.core.ids import Ids
from clepsydra.core.lifecycle import plan_creations
from clepsydra.core.plan import Refusal
from clepsydra.core.tables import make_put
from clepsydra.scheduler.errors import InvalidArgument
from clepsydra.scheduler.writes.call import Call, Outcome
from clepsydra.scheduler.writes.idempotency import remember_creation
from clepsydra.scheduler.writes.lives import Stamp
from clepsydra.scheduler.writes.mutations import Create
from clepsydra.store.errors import StoreError
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

# Planning lets the event loop run after this many requests.
_PLANNED_AT_ONCE = 250

_DONE = PutResult(PutOutcome.DONE)


class CreationBatch:
    """Plan, put, settle: `plan`, then send `puts`, then `settle` returns what becomes of each creation, in order.

    That is an action, an error, or a call that goes on because the store did not do it at once.
    """

    def __init__(self, requests: Sequence[CreateActionRequest], ids: Ids, shards: int, now_us: int) -> None:
        self._requests = requests
        # Chosen once, before the first try.
        count = len(requests)
        self._generated_ids, self._guids = ids.action_ids(count, now_us), ids.guids(count)
        self._shard_ids = ids.shard_runs(shards, count)
        self._now_us = now_us
        self._outcomes: list[Any] = []
        # By the places of the creations in the batch.
        self.puts: dict[int, Put] = {}
        # Creations of an action that the batch creates already, and the places of the first creations.
        self._duplicates: dict[int, int] = {}

    async def plan(self) -> None:
        for start in range(0, len(self._requests), _PLANNED_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            part = slice(start, start + _PLANNED_AT_ONCE)
            identities = self._generated_ids[part], self._guids[part]
            self._outcomes += plan_creations(self._requests[part], *identities, self._now_us)
        planned, requests = self._outcomes, self._requests
        columns = zip(repeat(None), planned, self._shard_ids, repeat(self._now_us))  # noqa: B905
        self.puts = dict(enumerate(map(make_put, columns)))
        # Nearly always each can be put as it was planned, which is cheap to find out.
        are_plain = not any(map(_request_id_of, requests)) and not any(map(_validate_only_of, requests))
        if not are_plain or Refusal in set(map(type, planned)) or len(set(map(_id_in, planned))) < len(planned):
            self._sort_out()

    def settle(self, results: Sequence[PutResult | StoreError], now_us: int) -> list[Outcome | Call]:
        if results.count(_DONE) == len(results) and not self._duplicates:
            return self._outcomes
        stored: dict[int, Action | None] = {}
        for (place, put), result in zip(self.puts.items(), results, strict=True):
            if isinstance(result, PutResult):
                stored[place] = put.action if result == _DONE else result.current
            if result != _DONE:
                call = self._call(place)
                call.planned_as(put, self._outcomes[place])
                call.settle(result, now_us)
                self._outcomes[place] = call
        for place, first in self._duplicates.items():
            call = self._call(place)
            if first in stored:
                call.plan(stored[first])
            self._outcomes[place] = call
        return self._outcomes

    def _sort_out(self) -> None:
        """Find the creations that cannot be put as they were planned."""
        places: dict[str, int] = {}
        for place, (request, action) in enumerate(zip(self._requests, self._outcomes, strict=True)):
            if isinstance(action, Refusal):
                del self.puts[place]
                # A repeated call gets its first response again, even if by now it is too late for the request.
                may_repeat = action.depends_on_time and request.request_id
                self._outcomes[place] = self._call(place) if may_repeat else InvalidArgument(action.violations)
            elif request.validate_only:
                del self.puts[place]
                self._outcomes[place] = self._call(place)
            elif places.setdefault(action.action_id, place) != place:
                # A batch names an action at most once.
                del self.puts[place]
                self._duplicates[place] = places[action.action_id]
            elif request.request_id:
                stored = remember_creation(request, action, self._now_us)
                self.puts[place] = self.puts[place]._replace(action=stored)

    def _call(self, place: int) -> Call:
        request = self._requests[place]
        stamp = Stamp(self._guids[place], self._shard_ids[place], self._now_us)
        return Call(Create(request, action_id_of(request, self._generated_ids[place]), stamp))


_request_id_of, _validate_only_of = attrgetter("request_id"), attrgetter("validate_only")
_id_in = itemgetter(Action._fields.index("action_id"))
