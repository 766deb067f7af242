"""One call, carried out on the real memory store in a given state of its tables, and checked."""

from functools import lru_cache
from typing import Any

from clepsydra.store.memory.store import QueueRow
from clepsydra.store.port import AdvanceOutcome, Mark
from tests.interleaving import checks
from tests.interleaving.checks import Broken, Seen
from tests.interleaving.state import Books, Kept, State, Tables, Write, order_of
from tests.interleaving.world import World

REMEMBERED = 200_000


class Commits:
    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store
        self._carry_out = lru_cache(REMEMBERED)(self._write)

    def commit(self, state: State, write: Write, *, is_first: bool) -> tuple[Tables, Books, Any]:
        """Carry out a call on the real memory store, and check what it did."""
        books = state.books
        try:
            tables, seen, outcome = self._carry_out(state.tables, state.clock_us, write)
            if write.put is not None:
                books = checks.after_put(books, write, seen, outcome)
            elif write.advance is not None:
                books = self._judge(books, write, seen, outcome, is_first=is_first)
        except Broken as broken:
            broken.by = write
            raise
        return tables, books, outcome

    def _write(self, tables: Tables, clock_us: int, write: Write) -> tuple[Tables, Seen, Any]:
        """The same call on the same tables has the same result, so it is made, and its tables are checked, once."""
        self.load(tables, clock_us)
        store, seen = self._store, Seen(None, row_was_there=False)
        if write.row is not None:
            if write.kind == "migrate":
                mark = Mark(f"worker {write.worker} migrates", write.row.at_us)
                outcome: Any = run(store.migrate([write.row], mark))
            else:
                outcome = run(store.drop([write.row]))
        elif write.put is not None:
            seen = Seen(store.actions.get(write.put.action.action_id), row_was_there=False)
            [outcome] = run(store.put([write.put]))
        else:
            assert write.advance is not None
            assert write.mark is not None
            row = write.advance.row
            there = (row.queue, row.shard_id, row.at_us, row.action_id, row.guid) in store.rows
            seen = Seen(store.actions.get(row.action_id), there)
            [outcome] = run(store.advance([write.advance], write.mark))
        after = self._taken_down()
        checks.check_rows(after)
        return after, seen, outcome

    def _judge(self, books: Books, write: Write, seen: Seen, outcome: AdvanceOutcome, *, is_first: bool) -> Books:
        assert write.due is not None
        begin = self._world.begin(write.due, write.worker)
        assert begin is not None
        if write.kind == "decision":
            return checks.after_decision(books, begin, seen, outcome)
        assert begin.attempt is not None
        attempt_id = begin.attempt.id
        if write.kind == "extend":
            return checks.after_extension(books, write, attempt_id, seen, outcome)
        return checks.after_finish(books, write, attempt_id, seen, outcome, is_first=is_first and write.is_sure)

    def load(self, tables: Tables, clock_us: int) -> None:
        self._world.moment.at_us = clock_us
        self._store.actions = {action.action_id: action for action in tables.actions}
        self._store.rows = {
            kept.key: QueueRow(kept.scheduled_at_us, kept.added_at_us, None, kept.rescheduled_by)
            for kept in tables.rows
        }

    def _taken_down(self) -> Tables:
        rows = [
            Kept(key, row.scheduled_at_us, row.added_to_incoming_queue_at_us, row.rescheduled_by)
            for key, row in self._store.rows.items()
        ]
        rows.sort(key=order_of)
        actions = tuple(self._store.actions[action_id] for action_id in sorted(self._store.actions))
        return Tables(actions, tuple(rows))


def run(coroutine: Any) -> Any:
    """The memory store never waits, so its coroutines end with their first step."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the memory store does not wait")
