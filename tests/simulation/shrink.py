"""Makes a failing plan smaller: leaves out faults, calls and nodes for as long as the same promise is still broken."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.simulation.faults import Behaviour
from tests.simulation.plan import Plan

T = TypeVar("T")
Fails = Callable[[Plan], bool]


def shrink(plan: Plan, fails: Fails, told: Callable[[Plan], None] = lambda plan: None) -> Plan:
    """The smallest plan found that still fails; `told` hears of each step."""
    going_on = True
    while going_on:
        going_on = False
        for smaller in _smaller(plan):
            if fails(smaller):
                plan, going_on = smaller, True
                told(plan)
                break
    return plan


def size_of(plan: Plan) -> int:
    """How much happens in a plan."""
    calls = sum(len(client.calls) for client in plan.clients)
    scripted = sum(behaviour is not Behaviour.SUCCEEDS for script in plan.scripts for behaviour in script)
    return calls + len(plan.timed) + len(plan.calls) + plan.workers + plan.schedulers + scripted


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the boldest cuts first."""
    for troubles in _parts(plan.calls):
        yield replace(plan, calls=troubles)
    for timed in _parts(plan.timed):
        yield replace(plan, timed=timed)
    for clients in _parts(plan.clients):
        yield replace(plan, clients=clients)
    for number, client in enumerate(plan.clients):
        for calls in _parts(client.calls):
            yield replace(plan, clients=_with(plan.clients, number, client._replace(calls=calls)))
    for number, script in enumerate(plan.scripts):
        for behaviours in _parts(script):
            if any(behaviour is not Behaviour.SUCCEEDS for behaviour in script):
                yield replace(plan, scripts=_with(plan.scripts, number, behaviours))
    yield from _plainer(plan)


def _plainer(plan: Plan) -> Iterator[Plan]:
    """The same world with less of it, or with fewer peculiarities."""
    nodes = plan.workers + plan.schedulers
    plainer = {
        "skew_us": (0,) * nodes,
        "drift_ppm": (0,) * nodes,
        "wakeups_are_lost": False,
        "slow_share": 0.0,
        "shards": 1,
    }
    for name, value in plainer.items():
        if getattr(plan, name) != value:
            yield replace(plan, **{name: value})  # type: ignore[arg-type]
    if plan.schedulers > 1:
        yield _without(plan, f"scheduler-{plan.schedulers - 1}", schedulers=plan.schedulers - 1)
    if plan.workers > 1 and not any(plan.skew_us) and not any(plan.drift_ppm):
        yield _without(plan, f"worker-{plan.workers - 1}", workers=plan.workers - 1)


def _without(plan: Plan, node: str, **fewer: int) -> Plan:
    timed = tuple(fault for fault in plan.timed if getattr(fault, "node", None) != node)
    calls = tuple(call for call in plan.calls if call.node != node)
    return replace(plan, timed=timed, calls=calls, **fewer)  # type: ignore[arg-type]


def _parts(things: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """The sequence without one half, one quarter and so on, down to without one."""
    size = (len(things) + 1) // 2
    while size:
        for start in range(0, len(things), size):
            yield (*things[:start], *things[start + size :])
        size = size // 2 if size > 1 else 0


def _with(things: tuple[T, ...], number: int, thing: T) -> tuple[T, ...]:
    return (*things[:number], thing, *things[number + 1 :])
