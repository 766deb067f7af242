"""Many small worlds on several cores."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from tests.cores import in_order_of_completion
from tests.interleaving.explore import Exploration, explore
from tests.interleaving.mutations import MUTATIONS
from tests.interleaving.world import Shape, World


@dataclass
class Explored:
    """What has been explored so far."""

    started_s: float = field(default_factory=time.monotonic)
    worlds: int = 0
    states: int = 0
    moves: int = 0
    broken: list[tuple[Shape, Exploration]] = field(default_factory=list)

    def line(self) -> str:
        took_s = time.monotonic() - self.started_s
        return (
            f"{self.worlds} worlds explored, {self.states} states, {self.moves} moves, "
            f"{self.states / took_s:.0f} states a second, {len(self.broken)} broken promises"
        )


def run(shape: Shape) -> tuple[Shape, Exploration]:
    return shape, explore(World(shape))


def campaign(
    executor: Executor, shapes: Iterable[Shape], told: Callable[[Explored], None], every_s: float = 10.0
) -> Explored:
    """Explore all of these worlds; a broken promise ends it."""
    done = Explored()
    told_s = done.started_s
    for shape, found in in_order_of_completion(executor, run, shapes):
        done.worlds += 1
        done.states += found.states
        done.moves += found.moves
        if found.broken is not None:
            done.broken.append((shape, found))
            break
        if time.monotonic() - told_s >= every_s:
            told_s = time.monotonic()
            told(done)
    return done


def mutate(number: int) -> tuple[str, Exploration]:
    """A mutation of the guard, in words, and what the explorer finds in it: it must find something."""
    mutation, shape = list(MUTATIONS.items())[number]
    return mutation.__doc__ or mutation.__name__, explore(mutation(shape))
