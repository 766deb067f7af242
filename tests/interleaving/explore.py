"""Explores every order of store calls in a small world, without going through the same state twice."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.interleaving.checks import Broken, Returned
from tests.interleaving.description import Label, describe
from tests.interleaving.moves import Move, Moves
from tests.interleaving.state import State
from tests.interleaving.world import World


@dataclass
class Exploration:
    """What was found."""

    states: int = 0
    moves: int = 0
    # The promise that was broken, and by what.
    broken: str | None = None
    # The moves that led to the violation.
    path: tuple[str, ...] = ()
    is_complete: bool = True

    def lines(self) -> list[str]:
        """How it came to that, move by move."""
        return [*(f"    {move}" for move in self.path), f"  {self.broken or 'nothing is broken'}"]


def explore(world: World, states_max: int | None = None) -> Exploration:
    """Depth first; states are remembered by their hash, of which a million collide once in tens of millions of runs."""
    moves, found = Moves(world), Exploration()
    start = moves.start()
    seen = {hash(start)}
    path: list[Label] = []
    stack: list[Iterator[Move]] = [_next(moves, start)]
    found.states = 1
    try:
        while stack:
            move = next(stack[-1], None)
            if move is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            label, state = move
            found.moves += 1
            key = hash(state)
            if key in seen:
                continue
            seen.add(key)
            found.states += 1
            if states_max is not None and found.states >= states_max:
                found.is_complete = False
                return found
            path.append(label)
            stack.append(_next(moves, state))
    except Broken as broken:
        found.broken = str(broken)
        found.path = tuple(map(describe, path if broken.by is None else [*path, (broken.by, "")]))
    return found


def _next(moves: Moves, state: State) -> Iterator[Move]:
    """The moves of a state, up to one after which nothing is promised."""
    steps = moves.of(state)
    while True:
        try:
            yield next(steps)
        except (StopIteration, Returned):
            return
