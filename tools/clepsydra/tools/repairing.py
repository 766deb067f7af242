"""A repair of a live store: slice by slice, with pauses, until it is done or somebody asks it to stop."""

import asyncio
import signal
from contextlib import aclosing
from typing import NamedTuple

import click

from clepsydra.core.ids import Ids
from clepsydra.core.times import SECOND_US
from clepsydra.store.errors import StoreError
from clepsydra.store.port import Store
from clepsydra.store.repair import Plan, Repaired, repair
from clepsydra.tools.output import Counter
from clepsydra.tools.process import asked_by_signals


class Pace(NamedTuple):
    """How gently it goes: so many actions or rows in one slice, and how long the pause after each."""

    slice_size: int
    pause_us: int


async def repair_gently(store: Store, ids: Ids, pace: Pace) -> tuple[Repaired, signal.Signals | None]:
    """Do what the audit calls for. Returns what was done, and the signal that stopped it before the end, if any."""
    stopping: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    counter = Counter("actions and rows repaired")
    total = Repaired()
    with asked_by_signals(stopping.set_result):
        try:
            async with aclosing(repair(store, ids, pace.slice_size)) as slices:
                async for done in slices:
                    total = total.plus(done)
                    counter.show(total.actions + total.rows)
                    await asyncio.wait([stopping], timeout=pace.pause_us / SECOND_US)
                    if stopping.done():
                        return total, stopping.result()
        except StoreError:
            click.echo(f"Before it failed: {done_in_words(total)}", err=True)
            raise
        finally:
            counter.clear()
    return total, None


def plan_in_words(plan: Plan) -> str:
    """
    >>> plan_in_words(Plan(actions=1, rows=2000))
    'A repair would give 1 action a new life with one row, and remove 2,000 rows.'
    """
    if plan == Plan(0, 0):
        return "There is nothing to repair."
    return f"A repair would give {_counted(plan.actions, 'action')} a new life with one row, and remove " + (
        f"{_counted(plan.rows, 'row')}."
    )


def done_in_words(repaired: Repaired) -> str:
    """
    >>> done_in_words(Repaired(actions=2, rows=1))
    '2 actions were given a new life with one row, 1 row was removed.'
    """
    changed = f", {_counted(repaired.changed, 'action')} changed meanwhile" if repaired.changed else ""
    return (
        f"{_counted(repaired.actions, 'action')} {_were(repaired.actions)} given a new life with one row, "
        f"{_counted(repaired.rows, 'row')} {_were(repaired.rows)} removed{changed}."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
