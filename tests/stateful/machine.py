"""A store and the model side by side: Hypothesis chooses the calls, and how many of them are in flight at once."""

import asyncio
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from clepsydra.core.ids import Ids
from tests.conformance.backends import Backend, TestClock
from tests.conformance.worlds import World, line_up
from tests.stateful.calls import Caller
from tests.stateful.model import Model, tables_of

# Those that change something come up more often.
KINDS = (
    ["put"] * 6 + ["due"] * 5 + ["migrate"] * 4 + ["advance"] * 6 + ["again"] * 4 + ["acquire", "acquire", "heartbeat"]
    + ["drop", "release", "soon", "stale", "get", "list_actions", "running", "inspect", "versions", "locks", "stats"]
    + ["audit", "wait", "now", "check_writable"]
)  # fmt: skip
# So few that every order can be tried.
_AT_ONCE = 4


class StoreMachine(RuleBasedStateMachine):
    """One run of it is one installation. A subclass says of which store."""

    backend_type: ClassVar[type[Backend]]
    # What came up in all runs together.
    made: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="clepsydra-stateful-")
        self._runner = asyncio.Runner()
        self._runner.run(self._open())

    async def _open(self) -> None:
        # Here, and not before: what a backend needs may belong to the event loop in which it is made.
        self._backend = self.backend_type(Path(self._folder.name))
        store = await self._backend.open(TestClock())
        self._world = World(store, await self._backend.reopen(), await store.now(), Ids(random.Random(7)))
        self._caller = Caller(self._world)
        self._model = Model(store.shards, TestClock(self._world.now_us))
        for each in (store, self._model.store):
            await line_up(each, self._world.now_us, Ids(random.Random(3)))

    @rule(
        wanted=st.lists(
            st.tuples(st.sampled_from(KINDS), st.integers(0, 10**6), st.booleans()), min_size=1, max_size=_AT_ONCE
        )
    )
    def calls_at_once(self, wanted: list[tuple[str, int, bool]]) -> None:
        """Some calls in flight at once, on two handles; then a look at everything."""
        self._runner.run(self._make(wanted))
        self.made.update(kind for kind, _, _ in wanted)

    async def _make(self, wanted: list[tuple[str, int, bool]]) -> None:
        made = [self._caller.call(kind, number) for kind, number, _ in wanted]
        calls = list({call.alone or str(n): call for n, call in enumerate(made)}.values())
        handles = [self._world.other if is_other else self._world.store for _, _, is_other in wanted]
        answers: list[Any] = await asyncio.gather(
            *(call.ask(handle) for call, handle in zip(calls, handles, strict=False))
        )
        await self._model.follow(calls, answers, await tables_of(self._world.store))
        for answer in answers:
            self._caller.learn(answer)
        # What was put is known to whoever put it.
        self._caller.learn(list(self._model.store.actions.values()))

    def teardown(self) -> None:
        type(self).made["runs"] += 1
        type(self).made["other orders"] += self._model.other_orders
        self._runner.run(self._backend.close())
        self._runner.close()
        self._folder.cleanup()


def machine_for(backend_type: type[Backend]) -> type[StoreMachine]:
    return type(f"{backend_type.__name__}Machine", (StoreMachine,), {"backend_type": backend_type, "made": Counter()})
