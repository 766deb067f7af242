"""How many sequences, and how long each: short and always the same, or long."""

from collections import Counter
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.backends import Backend
from tests.stateful.machine import machine_for


class Effort(NamedTuple):
    examples: int
    steps: int
    is_always_the_same: bool = False


SHORT = Effort(examples=5, steps=30, is_always_the_same=True)
LONG = Effort(examples=200, steps=60)


def explore(backend: type[Backend], effort: Effort) -> Counter[str]:
    """Run sequences on a store. Raises with the shortest sequence that a store and the model disagree about."""
    machine = machine_for(backend)
    chosen = settings(
        max_examples=effort.examples,
        stateful_step_count=effort.steps,
        derandomize=effort.is_always_the_same,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
    )
    run_state_machine_as_test(machine, settings=chosen)
    return machine.made
