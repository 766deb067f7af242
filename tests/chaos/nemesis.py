"""The nemesis: two strands of faults, chosen by seed, that go on side by side.

One strand hurts processes: SIGKILL and a new start, SIGSTOP beyond the lock's life and SIGCONT, SIGTERM. The other
hurts what lies between them: wires are cut, fall silent, delay or lose answers; the clock of the locks steps back; the
disk fills; the database crashes. Faults
are dealt like cards, in whole rounds, so that each kind comes up in every run. After a kill the audit is asked, unless
it is still busy with the one before: sometimes before what was killed is started again, mostly while all goes on.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from clepsydra.core.times import SECOND_US
from tests.chaos.processes import Node
from tests.chaos.proxy import Mode, Proxy
from tests.chaos.world import LOCK_LIFE_S, World

_AUDITED_BEFORE_THE_START = 0.2
_HOUR_US = 3600 * SECOND_US

Fault = Callable[[World, random.Random], Awaitable[None]]


class Deck(NamedTuple):
    """The faults of a strand, each as often as it stands here, and the longest pause between two of them."""

    faults: Sequence[Fault]
    pause_s: float


async def strike(world: World, deck: Deck, chance: random.Random, is_over: Callable[[], bool]) -> None:
    """One strand: one fault after the other, round by round, until it is over."""
    while not is_over():
        for fault in chance.sample(deck.faults, len(deck.faults)):
            await asyncio.sleep(chance.random() * deck.pause_s)
            await fault(world, chance)


async def kill_worker(world: World, chance: random.Random) -> None:
    await _kill(world, chance, [chance.choice(world.workers)])


async def kill_scheduler(world: World, chance: random.Random) -> None:
    await _kill(world, chance, [chance.choice(world.schedulers)])


async def kill_client(world: World, chance: random.Random) -> None:
    await _kill(world, chance, [chance.choice(world.clients)])


async def kill_servers(world: World, chance: random.Random) -> None:
    """The machine loses its power, as far as processes can tell."""
    await _kill(world, chance, world.servers())


async def pause_server(world: World, chance: random.Random) -> None:
    """SIGSTOP until every lock and lease of that process has gone to others, and SIGCONT."""
    node = chance.choice(world.servers())
    node.pause()
    world.events["pauses"] += 1
    await asyncio.sleep(LOCK_LIFE_S * chance.uniform(1.2, 2.2))
    node.go_on()


async def stop_server(world: World, chance: random.Random) -> None:
    """SIGTERM: what runs is finished, the process ends well, and another takes its place."""
    node = chance.choice(world.servers())
    had_served = "started" in node.said()
    code = await node.stop()
    world.events["polite stops"] += 1
    # Before it has set up its signals, a process ends by the signal itself.
    if code != 0 and had_served:
        world.troubles.append(f"{node.name} ended with {code} when asked to stop:\n{node.tail()}")
    node.start()


async def cut_wire(world: World, chance: random.Random) -> None:
    await _disturb(world, chance, Mode.REFUSING, chance.choice((0.0, 0.5, 2.0)))


async def silence_wire(world: World, chance: random.Random) -> None:
    await _disturb(world, chance, Mode.SILENT, chance.uniform(0.5, 4.0))


async def lose_responses(world: World, chance: random.Random) -> None:
    await _disturb(world, chance, Mode.LOSING_ANSWERS, chance.uniform(0.2, 2.0))


async def delay_responses(world: World, chance: random.Random) -> None:
    """Longer than most delays of the clients' actions, and shorter than a call may take."""
    await _disturb(world, chance, Mode.LATE, chance.uniform(2.0, 5.0))


async def step_clock_back(world: World, chance: random.Random) -> None:
    """A worker dies, and its heartbeats lie an hour ahead: its shards must not wait for that hour."""
    node = chance.choice(world.workers)
    if not node.is_running:
        return
    node.kill()
    world.events["clock steps"] += await world.store.step_clock_back(_HOUR_US) > 0
    node.start()


async def fill_disk(world: World, chance: random.Random) -> None:
    disk = world.store.disk
    assert disk is not None
    disk.fill(_pids(world))
    world.events["full disks"] += 1
    await asyncio.sleep(chance.uniform(0.5, 3.0))
    disk.empty(_pids(world))
    await world.store.recover()


async def crash_database(world: World, chance: random.Random) -> None:
    del chance
    await world.store.restart()
    world.events["database crashes"] += 1


# As often as the run wants kills: most of this strand.
KILLS = Deck((kill_worker, kill_worker, kill_scheduler, kill_scheduler, kill_servers), 1.0)
PROCESSES = Deck((*KILLS.faults, kill_worker, kill_scheduler, kill_client, pause_server, stop_server), KILLS.pause_s)


def surroundings(world: World) -> Deck:
    """What can go wrong around the processes of this world."""
    faults: list[Fault] = [cut_wire, silence_wire, lose_responses, delay_responses, step_clock_back]
    if world.store.disk is not None:
        faults.append(fill_disk)
    if world.store.can_restart:
        faults.append(crash_database)
    return Deck(faults, 1.5)


async def _kill(world: World, chance: random.Random, nodes: Sequence[Node]) -> None:
    nodes = [node for node in nodes if node.is_running]
    for node in nodes:
        node.kill()
        world.events["kills"] += 1
        world.events[f"kills of a {node.name.partition('-')[0]}"] += 1
    if nodes and chance.random() < _AUDITED_BEFORE_THE_START:
        await world.audit()
    elif nodes:
        world.audit_beside()
    for node in nodes:
        node.start()


async def _disturb(world: World, chance: random.Random, mode: Mode, for_s: float) -> None:
    wires: list[Proxy] = [*world.wires, *world.store.wires]
    wire = chance.choice(wires)
    wire.late_s = chance.uniform(0.5, 2.0)
    wire.set(mode)
    world.events[f"wires {mode.value}"] += 1
    await asyncio.sleep(for_s)
    wire.set(Mode.FORWARDING)


def _pids(world: World) -> list[int]:
    return [node.pid for node in world.servers() if node.is_running]
