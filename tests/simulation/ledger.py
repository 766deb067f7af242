"""The books of a run: every life that was committed, every attempt that was begun, and how each of them ended."""

from dataclasses import dataclass, field
from enum import Enum

from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.v1.action_pb2 import Counters, Retention


class End(Enum):
    """How an attempt ended, as the store has it."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"
    # Action and row were removed together with its outcome.
    REMOVED = "removed"


class Doing(Enum):
    """What a handler has come to, as the handler knows."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass
class BegunAttempt:
    attempt_id: str
    idempotency_key: str
    process: str
    planned_us: int
    begun_us: int
    # Begun as that of the only suspect in its process.
    is_alone: bool = False
    doing: Doing | None = None
    end: End | None = None


@dataclass
class Life:
    """One guid of one action."""

    action_id: str
    guid: str
    # Its place among the lives of the action.
    number: int
    # As they were when it began.
    counters: Counters
    is_deleted: bool
    in_flight: BegunAttempt | None = None
    is_over: bool = False
    # Those that the spec had in this life before its settings were changed.
    earlier_retentions: list[Retention] = field(default_factory=list)
    # Its rows were tampered with on purpose: nothing is promised for it, until it is repaired by a new life.
    is_damaged: bool = False


@dataclass
class Standing:
    """What an action has been, in the order of the commits: None stands for not there, or a tombstone."""

    lives: list[Life] = field(default_factory=list)
    visible: list[str | None] = field(default_factory=lambda: [None])
    # No attempt may begin in this life, nor in any before it: a delete or a pause was acknowledged.
    stopped_at: int = 0
    # The requests that made its lives, in order, for as long as the action remembers them.
    requests: list[str] = field(default_factory=list)
    # How many lives there were when changes without a request id were put together with others: their own lives are
    # not to be seen in the store.
    chains: list[int] = field(default_factory=list)

    @property
    def life(self) -> Life | None:
        return self.lives[-1] if self.lives and not self.lives[-1].is_over else None


class Books:
    def __init__(self) -> None:
        self.actions: dict[str, Standing] = {}
        self.lives: dict[str, Life] = {}
        self.attempts: dict[str, BegunAttempt] = {}
        self.successes: set[str] = set()
        # The attempts that killed their process, by its name.
        self.killers: dict[str, BegunAttempt] = {}
        # Request ids of calls that were refused for certain, and of those that took effect, with their lives.
        self.refused: set[str] = set()
        self.committed: dict[str, list[Life]] = {}
        # What each request asks for.
        self.kinds: dict[str, str] = {}
        # The occurrences that cancellations name, by their request ids.
        self.occurrences: dict[str, Timestamp] = {}

    def standing(self, action_id: str) -> Standing:
        found = self.actions.get(action_id)
        if found is None:
            found = self.actions[action_id] = Standing()
        return found

    def life_of(self, attempt_id: str) -> Life:
        return self.lives[attempt_id.partition("-")[0]]

    def forget(self, guid: str) -> None:
        """The same guid begins anew, as if it had never been."""
        for attempt_id in [attempt_id for attempt_id in self.attempts if attempt_id.startswith(guid)]:
            self.successes.discard(self.attempts.pop(attempt_id).idempotency_key)

    def ends(self) -> dict[str, int]:
        """How many attempts were begun, and how many ended in which way."""
        counts = {"begun": len(self.attempts), **{end.value: 0 for end in End}}
        for attempt in self.attempts.values():
            if attempt.end is not None:
                counts[attempt.end.value] += 1
        return counts
