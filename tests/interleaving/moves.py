"""Every store call that can come next in a state, and the states that they lead to."""

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from typing import Any

from clepsydra.core.action.events import Decision
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.plan import Begin
from clepsydra.core.times import END_OF_TIME_US, MILLISECOND_US, us_of
from clepsydra.scheduler.writes.call import Call as WriteCall
from clepsydra.scheduler.writes.chain import Chain
from clepsydra.scheduler.writes.commands import Cancel
from clepsydra.scheduler.writes.mutations import Create
from clepsydra.store.errors import OutcomeUnknown, StoreError
from clepsydra.store.port import Action, AdvanceOutcome, Due, Mark, PutResult, Queue
from clepsydra.v1.action_pb2 import Status
from tests.interleaving import checks
from tests.interleaving.checks import Broken
from tests.interleaving.commits import REMEMBERED, Commits, run
from tests.interleaving.description import Label
from tests.interleaving.state import (
    Books,
    Budget,
    Call,
    InFlight,
    State,
    Tables,
    WorkerState,
    Write,
    as_known,
    with_call,
    with_worker,
    without,
)
from tests.interleaving.world import EPOCH_US, World

_OF_LOOPS = ("decision", "migrate", "drop")
# What happened, and where it led.
Move = tuple[Label, State]

# Beyond its begin, by when an attempt has been extended or has ended.
_LATER_US = 60 * MILLISECOND_US


class Moves:
    def __init__(self, world: World) -> None:
        self._world = world
        self._shape = world.shape
        self._store = world.store
        self._commits = Commits(world)
        self._pages = lru_cache(REMEMBERED)(self._read_pages)

    def start(self) -> State:
        shape = self._shape
        return State(
            Tables((), ()),
            EPOCH_US,
            (WorkerState(),) * shape.workers,
            (Call("new"),) * len(shape.calls),
            (),
            Budget(shape.begins, shape.crashes, shape.troubles),
            Books(),
        )

    def of(self, state: State) -> Iterator[Move]:
        """All that can come next. Raises Broken as soon as one of them breaks a promise."""
        for number in range(len(state.workers)):
            if not any(write.kind in _OF_LOOPS for write in state.workers[number].unknown):
                # A loop makes one call after the other.
                yield from self._look(state, number)
                yield from self._use_what_is_known(state, number)
            yield from self._go_on(state, number)
            yield from self._repeat(state, number)
            reborn = WorkerState(round=state.workers[number].round + 1)
            if state.budget.crashes and state.workers[number] != WorkerState():
                spent = state.budget._replace(crashes=state.budget.crashes - 1)
                crashed = with_worker(state, number, reborn)._replace(budget=spent)
                yield f"worker {number} crashes", crashed
        for number in range(len(state.calls)):
            yield from self._call(state, number)
        yield from self._arrive_late(state)

    # What workers do.

    def _look(self, state: State, number: int) -> Iterator[Move]:
        """Read a shard: what is known from before is forgotten."""
        for found in self._pages(state.tables):
            known = self._useful(found, number, state.budget)
            looked = with_worker(state, number, state.workers[number]._replace(known=known))
            if known and looked != state:
                yield f"worker {number} looks", looked
            if not self._shape.waits_to_drop:
                for due in found:
                    if due.action is None:
                        yield from self._send(state, Write("drop", number, row=due.row))

    def _read_pages(self, tables: Tables) -> list[tuple[Due, ...]]:
        """What a look at each shard shows."""
        self._commits.load(tables, EPOCH_US)
        pages = [
            run(
                self._store.due(
                    shard_id,
                    incoming_from_us=0,
                    incoming_limit=100,
                    from_us=0,
                    until_us=END_OF_TIME_US - 1,
                    limit=100,
                )
            )
            for shard_id in range(self._shape.shards)
        ]
        return [as_known((*page.incoming, *page.due)) for page in pages]

    def _use_what_is_known(self, state: State, number: int) -> Iterator[Move]:
        worker = state.workers[number]
        for due in worker.known:
            rest = worker._replace(known=without(worker.known, due))
            row = due.row
            if due.action is None:
                yield from self._send(with_worker(state, number, rest), Write("drop", number, row=row))
                continue
            if row.queue is Queue.INCOMING:
                moved = rest._replace(known=as_known((*rest.known, self._world.migrated(due))))
                yield from self._send(with_worker(state, number, moved), Write("migrate", number, row=row))
            begin = self._decide(due, number, state.budget)
            if begin is None:
                continue
            mark = Mark(f"worker {number}.{worker.round} begins", row.at_us)
            write = Write("decision", number, begin.advance, mark, due=due)
            later = with_worker(state, number, rest)._replace(clock_us=_later(state, row.scheduled_at_us))
            yield from self._send(self._spend(later) if begin.attempt is not None else later, write)

    def _go_on(self, state: State, number: int) -> Iterator[Move]:
        """Attempts that are executed are extended, and end."""
        worker = state.workers[number]
        being_extended = [write.due for write in worker.unknown if write.kind == "extend"]
        for attempt in worker.in_flight:
            if attempt.begun in being_extended:
                # The two never overlap: whatever comes next waits until the extension is known or given up.
                continue
            ended = worker._replace(in_flight=without(worker.in_flight, attempt))
            due, at_us = attempt.begun, attempt.row_at_us
            later_us = _later(state, due.row.scheduled_at_us + _LATER_US)
            for result in self._shape.results:
                advance = self._world.finish(due, number, at_us, result)
                mark = Mark(f"worker {number}.{worker.round} ends {result}", at_us)
                finish = Write("finish", number, advance, mark, due=due, is_sure=attempt.is_sure)
                yield from self._send(with_worker(state, number, ended)._replace(clock_us=later_us), finish)
            if attempt.extensions < self._shape.extensions:
                advance = self._world.extend(due, number, at_us)
                mark = Mark(f"worker {number}.{worker.round} extends", at_us)
                extend = Write("extend", number, advance, mark, due=due)
                yield from self._send(state._replace(clock_us=later_us), extend)

    def _repeat(self, state: State, number: int) -> Iterator[Move]:
        """A call of unknown outcome is repeated as it was sent, or given up."""
        worker = state.workers[number]
        for write in worker.unknown:
            others = worker._replace(unknown=without(worker.unknown, write))
            unsure = tuple(
                each._replace(is_sure=False) if write.kind == "extend" and each.begun == write.due else each
                for each in worker.in_flight
            )
            yield (
                f"worker {number} gives up: {write.kind}",
                with_worker(state, number, others._replace(in_flight=unsure, round=worker.round + 1)),
            )
            rest = with_worker(state, number, others)
            yield f"worker {number} repeats: {write.kind}", self._apply(rest, write, may_be_done=True)

    # What the client's scheduler does.

    def _call(self, state: State, number: int) -> Iterator[Move]:
        call = state.calls[number]
        kind = self._shape.calls[number][0]
        if call.phase == "new":
            if number == 0 or self._shape.overlapping or state.calls[number - 1].phase == "over":
                yield f"call {number} ({kind}) begins", self._begin_call(state, number)
        elif call.phase == "putting":
            held: WriteCall = call.held
            assert held.put is not None
            yield from self._send(state, Write("put", -1, put=held.put, call=number))
            if state.budget.crashes:
                spent = state.budget._replace(crashes=state.budget.crashes - 1)
                yield (
                    f"call {number} ({kind}) loses its scheduler",
                    with_call(state, number, Call("over"))._replace(budget=spent),
                )

    def _begin_call(self, state: State, number: int) -> State:
        """Look, unless the call needs no look, and propose."""
        held = self._world.call(number)
        current = None
        if not isinstance(held.mutation, Create):
            self._commits.load(state.tables, state.clock_us)
            [current] = run(self._store.get([held.mutation.action_id]))
        held.plan(current)
        if isinstance(held.mutation, Cancel) and current is not None:
            seen = current.guid, us_of(Status.FromString(current.status).occurrence_time)
            cancelled = tuple(sorted({**dict(state.books.cancelled), self._world.guid(number): seen}.items()))
            state = state._replace(books=state.books._replace(cancelled=cancelled))
        return self._heard(state, number, held)

    def _heard(self, state: State, number: int, held: WriteCall) -> State:
        if held.outcome is None:
            version = (held.put, held.certainty, held.conflicts)
            return with_call(state, number, Call("putting", version, held))
        outcome = held.outcomes()[-1] if isinstance(held, Chain) else held.outcome
        if isinstance(outcome, Action):
            state = state._replace(books=self._acknowledged(state, number))
        return with_call(state, number, Call("over"))

    def _acknowledged(self, state: State, number: int) -> Books:
        kind = self._shape.calls[number][0]
        guid = self._world.guid(number)
        books = state.books
        if kind != "settings" and guid not in books.guids:
            raise Broken("what is acknowledged is committed", f"call {number} ({kind})")
        if kind in ("delete", "pause"):
            return books._replace(stopped=books.stopped | frozenset(self._lives_until(number)))
        if kind == "cancel":
            # A periodic action goes on in the life that the cancellation made.
            goes_on = {guid} if self._shape.periodic else set()
            return books._replace(stopped=books.stopped | (frozenset(self._lives_until(number)) - goes_on))
        return books

    def _lives_until(self, number: int) -> list[str]:
        """The life that a call made, and every life of its action that was current before."""
        calls = self._shape.calls
        first = number if self._shape.overlapping else 0
        return [
            self._world.guid(earlier) for earlier in range(first, number + 1) if calls[earlier][1] == calls[number][1]
        ]

    # What becomes of a call on its way.

    def _send(self, state: State, write: Write) -> Iterator[Move]:
        """It is answered; or its answer is lost; or it comes late; or a copy of it does."""
        answered = self._apply(state, write)
        yield (write, ""), answered
        if state.budget.troubles:
            spent = state.budget._replace(troubles=state.budget.troubles - 1)
            unanswered = self._apply(state._replace(budget=spent), write, is_answered=False)
            yield (write, ", and its answer is lost"), unanswered
            delayed = state._replace(budget=spent, late=(*state.late, write))
            yield (write, ", but it is on its way for long"), self._unanswered(delayed, write)
            spent = answered.budget._replace(troubles=spent.troubles)
            yield (write, ", and a copy stays behind"), answered._replace(late=(*answered.late, write), budget=spent)

    def _arrive_late(self, state: State) -> Iterator[Move]:
        for write in state.late:
            rest = state._replace(late=without(state.late, write))
            tables, books, _ = self._commits.commit(rest, write, is_first=False)
            yield (write, ", late"), rest._replace(tables=tables, books=books)

    def _apply(self, state: State, write: Write, *, is_answered: bool = True, may_be_done: bool = False) -> State:
        tables, books, outcome = self._commits.commit(state, write, is_first=not may_be_done)
        after = State(tables, state.clock_us, state.workers, state.calls, state.late, state.budget, books)
        if not is_answered:
            return self._unanswered(after, write)
        if write.kind == "put":
            return self._put_answered(after, write, outcome)
        return self._worker_answered(after, write, outcome)

    def _unanswered(self, state: State, write: Write) -> State:
        if write.kind == "put":
            return self._put_answered(state, write, OutcomeUnknown("no answer"))
        worker = state.workers[write.worker]
        return with_worker(state, write.worker, worker._replace(unknown=(*worker.unknown, write)))

    def _put_answered(self, state: State, write: Write, result: PutResult | StoreError) -> State:
        held: WriteCall = copy(state.calls[write.call].held)
        held.settle(result, state.clock_us)
        return self._heard(state, write.call, held)

    def _worker_answered(self, state: State, write: Write, outcome: Any) -> State:
        """A begin that was done is executed; an extension that was done is known; everything else is over."""
        if outcome is not AdvanceOutcome.DONE or write.due is None or write.advance is None:
            return state
        worker = state.workers[write.worker]
        if write.kind == "extend":
            in_flight = tuple(_extended(each, write) for each in worker.in_flight)
            return with_worker(state, write.worker, worker._replace(in_flight=in_flight))
        begin = self._world.begin(write.due, write.worker) if write.kind == "decision" else None
        if begin is None or begin.attempt is None or begin.advance.to_us is None:
            return state
        attempt_id = begin.attempt.id
        begun = InFlight(write.due, attempt_id, begin.advance.to_us, 0)
        executing = worker._replace(in_flight=(*worker.in_flight, begun))
        return with_worker(state, write.worker, executing)._replace(books=checks.after_start(state.books, attempt_id))

    def _spend(self, state: State) -> State:
        """One attempt more may have begun."""
        budget = state.budget._replace(begins=state.budget.begins - 1)
        workers = state.workers
        if not budget.begins:
            workers = tuple(
                worker._replace(known=self._useful(worker.known, number, budget))
                for number, worker in enumerate(workers)
            )
        return state._replace(budget=budget, workers=workers)

    def _useful(self, known: tuple[Due, ...], number: int, budget: Budget) -> tuple[Due, ...]:
        """What a worker can still do something with: the rest makes no difference."""
        return tuple(due for due in known if self._is_useful(due, number, budget))

    def _is_useful(self, due: Due, number: int, budget: Budget) -> bool:
        if due.action is None:
            return self._shape.waits_to_drop
        return due.row.queue is Queue.INCOMING or self._decide(due, number, budget) is not None

    def _decide(self, due: Due, number: int, budget: Budget) -> Begin | None:
        """What a worker may do with a live row now."""
        begin = self._world.begin(due, number)
        if begin is None or (begin.attempt is not None and not budget.begins):
            return None
        return begin if begin.decision is not Decision.PURGE or self._shape.purges else None


def _later(state: State, at_us: int) -> int:
    """The store's clock, once something has happened at a time.

    All that it decides is whether a put comes later than a call may be retried, so smaller steps make no difference.
    """
    return max(state.clock_us, at_us) if at_us - EPOCH_US > CALL_RETRY_US else state.clock_us


def _extended(attempt: InFlight, write: Write) -> InFlight:
    assert write.advance is not None
    if attempt.begun == write.due and attempt.row_at_us == write.advance.row.at_us and write.advance.to_us is not None:
        return attempt._replace(row_at_us=write.advance.to_us, extensions=attempt.extensions + 1)
    return attempt
