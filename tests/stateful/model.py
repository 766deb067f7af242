"""The memory store as a model that can be copied, so that every order of a few calls can be tried on it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

from clepsydra.core.clock import Clock
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import LockInfo, Store
from tests.conformance.worlds import Content, content_of
from tests.stateful.calls import Call


class Tables(NamedTuple):
    """All that a store holds."""

    content: Content
    locks: list[LockInfo]


async def tables_of(store: Store) -> Tables:
    return Tables(await content_of(store), await store.locks())


class Model:
    def __init__(self, shards: int, clock: Clock) -> None:
        self._clock = clock
        self.store = MemoryStore(shards, clock)
        # How often calls at once could only be explained by another order than that in which they were sent.
        self.other_orders = 0

    async def follow(self, calls: Sequence[Call], answers: Sequence[Any], tables: Tables) -> None:
        """Find an order of the calls that explains all answers and the tables after them, and go that way too."""
        tried = []
        at_the_locks = sum(call.beside_others is not None for call in calls)
        for order in permutations(range(len(calls))):
            candidate = self._copy()
            expected: dict[int, Any] = {}
            for n in order:
                beside_others = calls[n].beside_others
                if at_the_locks > 1 and beside_others is not None:
                    expected[n] = await beside_others(candidate, answers[n])
                else:
                    expected[n] = await calls[n].ask(candidate)
            outcome = [expected[n] for n in range(len(calls))]
            if outcome == list(answers) and await tables_of(candidate) == tables:
                self.store = candidate
                self.other_orders += list(order) != sorted(order)
                return
            tried.append(outcome)
        raise AssertionError(_told(calls, answers, tables, tried))

    def _copy(self) -> MemoryStore:
        copy = MemoryStore(self.store.shards, self._clock)
        copy.actions = dict(self.store.actions)
        copy.rows = {key: replace(row) for key, row in self.store.rows.items()}
        copy.shard_locks = {shard_id: replace(lock) for shard_id, lock in self.store.shard_locks.items()}
        return copy


def _told(calls: Sequence[Call], answers: Sequence[Any], tables: Tables, tried: Sequence[Sequence[Any]]) -> str:
    lines = [f"no order of these {len(calls)} calls explains the answers:"]
    for n, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        lines += [f"  {call}", f"    answered {answer}"]
        lines += [f"    the model   {outcome}" for outcome in {str(outcomes[n]) for outcomes in tried}]
    return "\n".join([*lines, f"and the tables are {tables}"])
