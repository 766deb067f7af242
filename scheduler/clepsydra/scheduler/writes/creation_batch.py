"""A batch of creations of many callers: what to put at once, and what becomes of each."""

from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from clepsydra.core.action.creation import action_id_of
from clepsydra.core.plan import Refusal
from clepsydra.core.tables import make_put
from clepsydra.scheduler.errors import InvalidArgument
from clepsydra.scheduler.writes.call import Call
from clepsydra.scheduler.writes.idempotency import remember_creation
from clepsydra.scheduler.writes.mutations import Create, Stamp
from clepsydra.store.errors import StoreError
from clepsydra.store.port import Action, PutOutcome, PutResult
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

_DONE = PutResult(PutOutcome.DONE)


class Identities(NamedTuple):
    """What is chosen once for a batch of creations, before the first try, in the order of the requests."""

    generated_ids: Sequence[str]
    guids: Sequence[str]
    shard_ids: Sequence[int]
    now_us: int


class CreationBatch:
    """A batch of creations: what to put at first, and what becomes of each, by their places in the batch."""

    def __init__(
        self, requests: Sequence[CreateActionRequest], planned: Sequence[Action | Refusal], identities: Identities
    ) -> None:
        self._requests = requests
        self._identities = identities
        # In the end an action, an error, or a call that goes on.
        self.outcomes: list[Any] = [*planned]
        shard_ids, now_us = identities.shard_ids, identities.now_us
        columns = zip(repeat(None), planned, shard_ids, repeat(now_us))  # noqa: B905  # repeat has no end
        self.puts = dict(enumerate(map(make_put, columns)))
        # Creations of an action that the batch creates already, and the places of the first creations.
        self._duplicates: dict[int, int] = {}
        if not _are_all_simple(requests, planned):
            self._sort_out()

    def settle(self, results: Sequence[PutResult | StoreError], now_us: int) -> None:
        if results.count(_DONE) == len(results) and not self._duplicates:
            return
        stored: dict[int, Action | None] = {}
        for (place, put), result in zip(self.puts.items(), results, strict=True):
            if isinstance(result, PutResult):
                stored[place] = put.action if result == _DONE else result.current
            if result != _DONE:
                call = self._call(place)
                call.planned_as(put, self.outcomes[place])
                call.settle(result, now_us)
                self.outcomes[place] = call
        for place, first in self._duplicates.items():
            call = self._call(place)
            if first in stored:
                call.plan(stored[first])
            self.outcomes[place] = call

    def _sort_out(self) -> None:
        """Find the creations that cannot be put as they were planned."""
        places: dict[str, int] = {}
        for place, (request, action) in enumerate(zip(self._requests, self.outcomes, strict=True)):
            if isinstance(action, Refusal):
                del self.puts[place]
                # A repeated call gets its first response again, even if by now it is too late for the request.
                may_repeat = action.depends_on_time and request.request_id
                self.outcomes[place] = self._call(place) if may_repeat else InvalidArgument(action.violations)
            elif request.validate_only:
                del self.puts[place]
                self.outcomes[place] = self._call(place)
            elif places.setdefault(action.action_id, place) != place:
                # A batch names an action at most once.
                del self.puts[place]
                self._duplicates[place] = places[action.action_id]
            elif request.request_id:
                stored = remember_creation(request, action, self._identities.now_us)
                self.puts[place] = self.puts[place]._replace(action=stored)

    def _call(self, place: int) -> Call:
        request, identities = self._requests[place], self._identities
        stamp = Stamp(identities.guids[place], identities.shard_ids[place], identities.now_us)
        return Call(Create(request, action_id_of(request, identities.generated_ids[place]), stamp))


def _are_all_simple(requests: Sequence[CreateActionRequest], planned: Sequence[Action | Refusal]) -> bool:
    """Whether each can be put as it was planned: nearly always so, and cheap to find out."""
    if any(map(_request_id_of, requests)) or any(map(_validate_only_of, requests)):
        return False
    return Refusal not in set(map(type, planned)) and len(set(map(_id_in, planned))) == len(planned)


_request_id_of, _validate_only_of = attrgetter("request_id"), attrgetter("validate_only")
_id_in = itemgetter(Action._fields.index("action_id"))
