"""A state of a small world: what the store holds, what every actor knows, and what has happened so far.

States are values. The explorer loads one into a real memory store, lets one actor make one store call, and takes the
result down as the next state.
"""

from typing import Any, NamedTuple, TypeVar

from clepsydra.store.port import Action, Advance, Due, Mark, Put, Row

Key = tuple[Any, int, int, str, str]
T = TypeVar("T")


class Kept(NamedTuple):
    """A row of a queue."""

    key: Key
    scheduled_at_us: int
    added_at_us: int
    rescheduled_by: Mark | None


class Tables:
    """What the store holds. States are compared by it all the time, so its hash is made once."""

    __slots__ = ("_hash", "actions", "rows")

    def __init__(self, actions: tuple[Action, ...], rows: tuple[Kept, ...]) -> None:
        self.actions = actions
        self.rows = rows
        self._hash = hash((actions, rows))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Tables) and self.actions == other.actions and self.rows == other.rows
        )

    def __hash__(self) -> int:
        return self._hash


class InFlight(NamedTuple):
    """An attempt that a worker executes: the row that it was begun from, and where that lies now."""

    begun: Due
    attempt_id: str
    row_at_us: int
    extensions: int
    # False once an extension was given up of which nobody knows whether it was done.
    is_sure: bool = True


class Write(NamedTuple):
    """A store call that writes, as it was sent: what can be repeated, and what can come late."""

    kind: str
    worker: int
    advance: Advance | None = None
    mark: Mark | None = None
    # A row to migrate, or to drop.
    row: Row | None = None
    put: Put | None = None
    call: int = -1
    # What the attempt that it begins, extends or finishes was begun from.
    due: Due | None = None
    # Whether its sender knows where the row lies.
    is_sure: bool = True


class WorkerState(NamedTuple):
    # What the last look found, and nothing has been done with.
    known: tuple[Due, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    # Calls whose outcome is unknown, to be repeated.
    unknown: tuple[Write, ...] = ()
    # Raised by each call that was given up: its mark is never used again.
    round: int = 0


class Call(NamedTuple):
    """How far a call of the client has come; `held` is its outcome, and compares by `version`."""

    phase: str
    version: tuple[Any, ...] = ()
    held: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self[:2] == other[:2]

    def __hash__(self) -> int:
        return hash(self[:2])


class Books(NamedTuple):
    """What has happened: as little as the promises need."""

    # Every guid that was ever current.
    guids: frozenset[str] = frozenset()
    # The attempt that is in flight in each life, and all that were begun, started and ended.
    open: tuple[tuple[str, str], ...] = ()
    begun: frozenset[str] = frozenset()
    started: frozenset[str] = frozenset()
    # Lives in which nothing may begin any more.
    stopped: frozenset[str] = frozenset()
    # For each life that a cancellation makes: the life and the occurrence that its call saw first.
    cancelled: tuple[tuple[str, tuple[str, int]], ...] = ()
    # The last life of each action.
    last: tuple[tuple[str, str], ...] = ()


class Budget(NamedTuple):
    """How much may still happen; without it, worlds would go on for ever."""

    begins: int
    crashes: int
    troubles: int


class State(NamedTuple):
    tables: Tables
    clock_us: int
    workers: tuple[WorkerState, ...]
    calls: tuple[Call, ...]
    # Copies of calls that are still on their way.
    late: tuple[Write, ...]
    budget: Budget
    books: Books


def with_worker(state: State, number: int, worker: WorkerState) -> State:
    workers = (*state.workers[:number], worker, *state.workers[number + 1 :])
    return State(state.tables, state.clock_us, workers, state.calls, state.late, state.budget, state.books)


def with_call(state: State, number: int, call: Call) -> State:
    return state._replace(calls=(*state.calls[:number], call, *state.calls[number + 1 :]))


def without(things: tuple[T, ...], thing: T) -> tuple[T, ...]:
    index = things.index(thing)
    return (*things[:index], *things[index + 1 :])


def as_known(known: tuple[Due, ...]) -> tuple[Due, ...]:
    """What a worker knows has no order: the same knowledge is the same state."""
    return tuple(sorted(known, key=lambda due: (due.row.queue.value, due.row[1:5])))


def order_of(kept: Kept) -> tuple[str, int, int, str, str]:
    """Rows of a store have none either, but for the one that is written down."""
    queue, shard_id, at_us, action_id, guid = kept.key
    return (queue.name, shard_id, at_us, action_id, guid)
