"""A plan is all that a run does, drawn from one seed: the world, its clients, its handlers and its faults.

Each seed turns on its own mixture of faults. A plan is made of lists, so that a failing one can be made smaller by
leaving things out; what stays behaves as before, because every node and every handler has randomness of its own.
"""

import random
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from clepsydra.core.times import MILLISECOND_US, SECOND_US
from tests.simulation.faults import (
    Behaviour,
    BrokenLocks,
    CallFault,
    ClockStep,
    Corruption,
    Damage,
    Drain,
    Kill,
    Outage,
    Stall,
    TimedFault,
    TroubledCall,
)

T = TypeVar("T")

_COMMON_EVERY = 10

# How many calls of each method are drawn for trouble: about as many as a node makes while faults are on.
_CALLS = {
    "now": 2,
    "acquire": 16,
    "heartbeat": 12,
    "release": 8,
    "due": 40,
    "migrate": 12,
    "advance": 24,
    "stale": 6,
    "put": 24,
    "get": 24,
}
_WORKER_CALLS = ("now", "acquire", "heartbeat", "release", "due", "migrate", "advance", "stale")
_SCHEDULER_CALLS = ("now", "put", "get")


class SpecPlan(NamedTuple):
    """What an action is asked to do; zero stands for what is left out."""

    delay_us: int
    interval_us: int
    drift: bool
    max_runs: int
    max_attempts: int
    retry_us: int
    timeout_us: int
    start_deadline_us: int
    kept_after_success_us: int
    kept_after_failure_us: int
    interruption_limit: int
    # Leaves out all but the delay: the kind of action for which schedulers and workers have a short way.
    is_common: bool = False


class CallPlan(NamedTuple):
    """One call of a client."""

    pause_us: int
    kind: str
    action: int
    spec: SpecPlan
    has_request_id: bool
    # Send it again some time after it was answered.
    replayed_after_us: int | None


class ClientPlan(NamedTuple):
    calls: tuple[CallPlan, ...]
    # Without waiting for answers.
    floods: bool


@dataclass(frozen=True)
class WorkerPlan:
    """The settings of all workers of a run."""

    loops: int
    attempts: int
    lease_ms: int
    grace_ms: int
    lock_life_ms: int
    heartbeat_ms: int
    horizon_ms: int
    poll_min_ms: int
    poll_max_ms: int
    shard_max_ms: int
    page: int
    batch: int
    drain_ms: int
    collect_page: int
    collect_pass_ms: int


@dataclass(frozen=True)
class Plan:
    seed: int
    store: str
    shards: int
    worker: WorkerPlan
    workers: int
    schedulers: int
    clients: tuple[ClientPlan, ...]
    # For each action, what its handler does the first times it is called; from then on it succeeds.
    scripts: tuple[tuple[Behaviour, ...], ...]
    timed: tuple[TimedFault, ...]
    calls: tuple[TroubledCall, ...]
    # Of the wall clocks at the start, and of the monotonic clocks, by node.
    skew_us: tuple[int, ...]
    drift_ppm: tuple[int, ...]
    wakeups_are_lost: bool
    # How much of the calls takes real time, and how much at most.
    slow_share: float
    latency_us: int
    faults_end_us: int

    @property
    def nodes(self) -> tuple[str, ...]:
        return (
            *(f"worker-{n}" for n in range(self.workers)),
            *(f"scheduler-{n}" for n in range(self.schedulers)),
        )


def draw(seed: int, store: str = "memory") -> Plan:
    """The plan of a seed."""
    plan = _Drawing(seed, store).plan()
    return _of_common_actions(plan) if is_common(seed) else plan


def is_common(seed: int) -> bool:
    return seed % _COMMON_EVERY == 2


def _of_common_actions(plan: Plan) -> Plan:
    """The same run, but every action is of the common kind.

    By default an attempt may hang for a minute, and a tenth failure is retried after many: so nothing hangs here, and
    what fails fails once or twice.
    """
    clients = tuple(
        client._replace(calls=tuple(call._replace(spec=call.spec._replace(is_common=True)) for call in client.calls))
        for client in plan.clients
    )
    scripts = tuple(tuple(each for each in script if each is not Behaviour.HANGS)[:2] for script in plan.scripts)
    return replace(plan, clients=clients, scripts=scripts)


class _Drawing:
    def __init__(self, seed: int, store: str) -> None:
        self._seed = seed
        self._store = store
        self._random = random.Random(f"plan {seed}")
        # One run in twenty is long enough for tombstones to be purged, and for calls to come later than they may.
        self._is_long = self._chance(0.05)
        self._end_us = self._between(30, 40) * SECOND_US if self._is_long else self._between(2, 6) * SECOND_US
        self._workers = self._between(1, 3)
        self._schedulers = self._between(1, 2)
        self._actions = self._between(1, 6)
        self._worker = self._worker_plan()

    def plan(self) -> Plan:
        nodes = self._workers + self._schedulers
        skewed, drifting = self._chance(0.3), self._chance(0.3)
        return Plan(
            seed=self._seed,
            store=self._store,
            shards=self._between(1, 4),
            worker=self._worker,
            workers=self._workers,
            schedulers=self._schedulers,
            clients=tuple(self._client() for _ in range(self._between(1, 3))),
            scripts=tuple(self._script() for _ in range(self._actions)),
            timed=tuple(sorted(self._timed(), key=lambda fault: fault.at_us)),
            calls=tuple(self._troubled_calls()),
            skew_us=tuple(self._signed(10 * SECOND_US) if skewed else 0 for _ in range(nodes)),
            drift_ppm=tuple(self._signed(500) if drifting else 0 for _ in range(nodes)),
            wakeups_are_lost=self._chance(0.2),
            slow_share=self._one_of((0.0, 0.05, 0.3)),
            latency_us=self._one_of((MILLISECOND_US, 20 * MILLISECOND_US, 200 * MILLISECOND_US)),
            faults_end_us=self._end_us,
        )

    def _worker_plan(self) -> WorkerPlan:
        lock_life_ms = self._between(500, 1500)
        poll_max_ms = self._between(500, 1500) * (4 if self._is_long else 1)
        return WorkerPlan(
            loops=self._between(1, 3),
            attempts=self._one_of((1, 3, 20, 20, 20)),
            lease_ms=lock_life_ms + self._between(0, 1000),
            grace_ms=self._between(100, 600),
            lock_life_ms=lock_life_ms,
            heartbeat_ms=lock_life_ms // self._between(2, 3),
            horizon_ms=self._one_of((1, 2, 4)) * poll_max_ms,
            poll_min_ms=self._between(20, 100),
            poll_max_ms=poll_max_ms,
            shard_max_ms=self._between(500, 5000),
            page=self._one_of((1, 2, 50)),
            batch=self._one_of((1, 2, 50)),
            drain_ms=self._between(0, 1000),
            collect_page=self._one_of((1, 3, 50)),
            collect_pass_ms=self._between(500, 3000),
        )

    def _client(self) -> ClientPlan:
        floods = self._chance(0.3)
        calls = self._between(8, 24) if floods else self._between(2, 8)
        pause_us = 0 if floods else self._end_us // (2 * calls)
        few = self._between(1, self._actions)
        return ClientPlan(tuple(self._call(n, pause_us, few) for n in range(calls)), floods)

    def _call(self, n: int, pause_us: int, few: int) -> CallPlan:
        kinds = (
            *("create", "update", "label", "delete", "pause", "resume", "run", "cancel", "get"),
            *("batch", "unbatch", "list"),
        )
        weights = (30, 20, 5, 10, 6, 6, 8, 8, 5, 6, 3, 1) if n else (1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0)
        return CallPlan(
            pause_us=self._random.randint(0, 2 * pause_us),
            kind=self._random.choices(kinds, weights)[0],
            action=self._random.randrange(few),
            spec=self._spec(),
            has_request_id=self._chance(0.8),
            replayed_after_us=self._random.randint(0, 4 * SECOND_US) if self._chance(0.15) else None,
        )

    def _spec(self) -> SpecPlan:
        periodic = self._chance(0.35)
        return SpecPlan(
            delay_us=self._random.choice((0, 0, self._random.randint(0, 3 * SECOND_US))),
            interval_us=self._random.randint(150, 2000) * MILLISECOND_US * (8 if self._is_long else 1) * periodic,
            drift=self._chance(0.3),
            max_runs=self._one_of((0, 1, 3)),
            max_attempts=self._one_of((1, 2, 3, 0)),
            retry_us=self._random.randint(0, SECOND_US),
            timeout_us=self._random.choice((200, 1000, 4000)) * MILLISECOND_US,
            start_deadline_us=self._random.randint(1, 2 * SECOND_US) if self._chance(0.15) else 0,
            kept_after_success_us=self._one_of((0, SECOND_US, 3600 * SECOND_US)),
            kept_after_failure_us=self._one_of((0, SECOND_US, 3600 * SECOND_US)),
            interruption_limit=self._one_of((0, 1, 3)),
        )

    def _script(self) -> tuple[Behaviour, ...]:
        weights = self._random.choice(((10, 0, 0, 0, 0, 0), (6, 3, 1, 1, 2, 1), (2, 2, 1, 1, 3, 3)))
        return tuple(self._random.choices(tuple(Behaviour), weights, k=8))

    def _timed(self) -> list[TimedFault]:
        faults: list[TimedFault] = []
        life_us = self._worker.lease_ms * MILLISECOND_US + self._worker.grace_ms * MILLISECOND_US
        if self._chance(0.6):
            faults += [
                Kill(self._moment(), self._node(), self._random.randint(1, 40), self._random.randint(0, 2 * life_us))
                for _ in range(self._between(1, 4))
            ]
        if self._chance(0.3):
            faults += [
                Drain(self._moment(), self._worker_node(), self._random.randint(0, life_us))
                for _ in range(self._between(1, 2))
            ]
        if self._chance(0.4):
            faults += [
                Stall(self._moment(), self._node(), self._random.randint(life_us // 4, 2 * life_us))
                for _ in range(self._between(1, 3))
            ]
        if self._chance(0.3):
            faults += [ClockStep(self._moment(), self._node(), self._signed(3600 * SECOND_US))]
        if self._chance(0.25):
            faults += [Outage(self._moment(), self._random.randint(MILLISECOND_US, 2 * life_us))]
        if self._chance(0.25):
            faults += [BrokenLocks(self._moment() // 2, self._end_us)]
        if self._chance(0.15):
            faults += [self._corruption() for _ in range(self._between(1, 2))]
        return faults

    def _corruption(self) -> Corruption:
        damage = self._random.choice(tuple(Damage))
        return Corruption(self._moment(), self._random.randrange(self._actions), damage, self._between(0, SECOND_US))

    def _troubled_calls(self) -> list[TroubledCall]:
        if not self._chance(0.7):
            return []
        share = self._one_of((0.02, 0.08, 0.25))
        kinds = [fault for fault in CallFault if self._chance(0.5)] or list(CallFault)
        late_us = 30 * SECOND_US if self._is_long else 3 * self._worker.lease_ms * MILLISECOND_US
        calls = []
        for node in range(self._workers + self._schedulers):
            name = self._name(node)
            for method in _WORKER_CALLS if node < self._workers else _SCHEDULER_CALLS:
                for nth in range(1, _CALLS[method] + 1):
                    if self._chance(share):
                        fault, delay_us = self._random.choice(kinds), self._random.randint(1, late_us)
                        calls.append(TroubledCall(name, method, nth, fault, delay_us))
        return calls

    def _name(self, node: int) -> str:
        return f"worker-{node}" if node < self._workers else f"scheduler-{node - self._workers}"

    def _node(self) -> str:
        return self._name(self._random.randrange(self._workers + self._schedulers))

    def _worker_node(self) -> str:
        return self._name(self._random.randrange(self._workers))

    def _moment(self) -> int:
        return self._random.randint(0, self._end_us)

    def _between(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def _signed(self, most: int) -> int:
        return self._random.randint(-most, most)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one_of(self, choices: tuple[T, ...]) -> T:
        return self._random.choice(choices)
