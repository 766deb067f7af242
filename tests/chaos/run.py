"""A run: start everything, let the nemesis have its way, heal, wait until nothing is owed, and judge."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import nemesis
from tests.chaos.client import allow, allowance_path
from tests.chaos.history import Call, Kind, Outcome, read_history
from tests.chaos.proxy import Mode
from tests.chaos.side_log import Event, Line, lines_in
from tests.chaos.stores import ChaosStore
from tests.chaos.tables import Entry, opened, read_entries
from tests.chaos.until import until
from tests.chaos.verdict import judge
from tests.chaos.world import Clients, World

# What lies further ahead than this is the end of a retention: nothing is owed before it.
_OWED_WITHIN_US = 600 * 1_000_000
_STUCK_AFTER_S = 120.0
_CLIENTS = 2


@dataclass(frozen=True)
class Plan:
    """What a run shall be like. Equal plans make equal choices; the machine's timing is its own."""

    seed: int
    actions: int
    kills: int
    kills_only: bool = False
    schedulers: int = 1
    workers: int = 2


@dataclass
class Summary:
    """What happened, in numbers, and the verdict."""

    plan: Plan
    violations: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)
    lasted_s: float = 0.0

    def __str__(self) -> str:
        groups = (("faults and audits", self.events), ("calls", self.calls), ("work", self.work))
        lines = [f"{self.plan}", f"it lasted {self.lasted_s:.0f} s"]
        lines += [f"{name}: " + ", ".join(f"{n:,} {what}" for what, n in sorted(of.items())) for name, of in groups]
        lines += [f"violation: {violation}" for violation in self.violations]
        lines.append(f"{len(self.violations)} violations")
        return "\n".join(lines)


Tell = Callable[[str], None]


async def run(plan: Plan, folder: Path, store: ChaosStore, tell: Tell) -> Summary:
    began_s = time.monotonic()
    clients = Clients(_CLIENTS, -(-plan.actions // _CLIENTS), plan.seed)
    world = World(folder, store, schedulers=plan.schedulers, workers=plan.workers, clients=clients)
    summary = Summary(plan)
    async with world:
        try:
            await _suffer(plan, world, tell)
            await _heal(plan, world, tell)
            entries = await _settle(world, tell)
        except AssertionError as error:
            # It did not come to rest: what there is can still be judged.
            world.troubles.append(f"{error}\n{world.tails()}")
            entries = await _entries(world)
        await _conclude(world)
        _judge(world, entries, summary)
    summary.events = world.events
    summary.lasted_s = time.monotonic() - began_s
    return summary


async def _suffer(plan: Plan, world: World, tell: Tell) -> None:
    """Faults until there were enough kills; meanwhile clients may create in proportion to them."""

    def is_over() -> bool:
        return world.events["kills"] >= plan.kills

    def progress() -> None:
        share = min(1.0, (world.events["kills"] + 2) / max(1, plan.kills))
        for node in world.clients:
            allow(allowance_path(world.folder, node.name), round(share * plan.actions / len(world.clients)))

    decks = [nemesis.KILLS] if plan.kills_only else [nemesis.PROCESSES, nemesis.surroundings(world)]
    strands = [
        asyncio.ensure_future(nemesis.strike(world, deck, random.Random(f"{plan.seed} {n}"), is_over))
        for n, deck in enumerate(decks)
    ]
    reporting = asyncio.ensure_future(_report(world, tell, progress))
    try:
        await asyncio.gather(*strands)
    finally:
        for each in (reporting, *strands):
            each.cancel()
        await asyncio.wait([reporting, *strands])


async def _report(world: World, tell: Tell, progress: Callable[[], None]) -> None:
    told_s = time.monotonic()
    while True:
        progress()
        await asyncio.sleep(0.1)
        if time.monotonic() - told_s > 10:
            told_s = time.monotonic()
            tell(f"{world.events['kills']} kills, {len(world.troubles)} troubles")


async def _heal(plan: Plan, world: World, tell: Tell) -> None:
    """Everything runs again, and the clients finish what they have to do."""
    tell("healing")
    for wire in (*world.wires, *world.store.wires):
        wire.set(Mode.FORWARDING)
    for node in world.nodes():
        node.go_on()
    for node in world.clients:
        allow(allowance_path(world.folder, node.name), plan.actions)
    await world.ready()
    await _while_it_goes_on(world, lambda: all(not node.wanted for node in world.clients), "every client is done")


async def _settle(world: World, tell: Tell) -> dict[str, Entry]:
    """Wait until nothing is owed any more, and read the tables."""
    tell("waiting until nothing is owed")
    async with opened(world.store.url) as store:

        async def nothing_is_owed() -> bool:
            now_us = await store.now()
            earliest_us = (await store.stats(now_us)).earliest_us
            return earliest_us is None or earliest_us > now_us + _OWED_WITHIN_US

        await _while_it_goes_on(world, nothing_is_owed, "nothing is owed any more")
    return await _entries(world)


async def _while_it_goes_on(world: World, condition: Callable[[], object], what: str) -> None:
    """Wait for as long as the side log or a history grows: how long that takes is the machine's affair."""
    deadline_s = 0.0
    size = -1

    async def holds_or_is_stuck() -> bool:
        nonlocal deadline_s, size
        answer = condition()
        holds = await answer if asyncio.iscoroutine(answer) else answer
        paths = [path for path in (world.side_log, *world.histories()) if path.exists()]
        grown = sum(path.stat().st_size for path in paths)
        if grown != size:
            size, deadline_s = grown, time.monotonic() + _STUCK_AFTER_S
        assert time.monotonic() < deadline_s, f"for {_STUCK_AFTER_S:g} s nothing happened, and it is not so: {what}"
        return bool(holds)

    await until(holds_or_is_stuck, what, timeout_s=float("inf"), look_s=0.25)


async def _entries(world: World) -> dict[str, Entry]:
    async with opened(world.store.url) as store:
        return await read_entries(store)


async def _conclude(world: World) -> None:
    """The last audit, and an end in good order: servers stop when asked, and leave no lock behind."""
    await world.end_of_audits()
    await world.audit()
    for node in world.servers():
        code = await node.stop()
        if code != 0:
            world.troubles.append(f"{node.name} ended with {code} when asked to stop in the end:\n{node.tail()}")
    async with opened(world.store.url) as store:
        locked = [lock.shard_id for lock in await store.locks() if lock.locked]
    if locked:
        world.troubles.append(f"shards {locked} are still locked, and every worker has stopped")
    world.troubles += world.defects()


def _judge(world: World, entries: dict[str, Entry], summary: Summary) -> None:
    calls = list(read_history(world.histories()).calls.values())
    lines = list(lines_in(world.side_log))
    summary.violations = world.troubles + [str(violation) for violation in judge(calls, lines, entries)]
    _count_calls(calls, summary.calls)
    _count_work(lines, entries, summary.work)


def _count_calls(calls: list[Call], counts: Counter[str]) -> None:
    for call in calls:
        counts[f"{call.kind} {call.outcome}"] += 1
        counts["tried again"] += call.tries > 1
        counts["replayed"] += len(call.replayed_guids)
    counts["acknowledged actions"] = sum(call.kind is Kind.CREATE and call.outcome is Outcome.OK for call in calls)


def _count_work(lines: list[Line], entries: dict[str, Entry], counts: Counter[str]) -> None:
    for line in lines:
        counts[f"executions {line.event}"] += 1
    starts = Counter(line.idempotency_key for line in lines if line.event is Event.STARTED)
    counts["occurrences executed"] = len(starts)
    counts["attempts interrupted"] = sum(entry.interrupted for entry in entries.values())
    counts["actions in the tables"] = len(entries)
