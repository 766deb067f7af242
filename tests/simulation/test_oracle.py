"""The oracle finds out a store that breaks a promise, and what it tells can be read, repeated and made smaller."""

import re

import pytest

from clepsydra.core.action.creation import accept
from clepsydra.core.action.update import Updated
from clepsydra.core.clock import DisciplinedClock
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Put, PutResult
from clepsydra.v1.action_pb2 import ScheduledAction, Spec, Status
from clepsydra.worker.attempts.suspects import Suspects
from clepsydra.worker.capacity import Capacity
from tests.interleaving import mutations
from tests.interleaving.world import World
from tests.simulation.__main__ import main
from tests.simulation.campaign import plan_of
from tests.simulation.plan import Plan
from tests.simulation.run import Report, run_plan
from tests.simulation.shrink import shrink, size_of

# Each with some of the seeds in which it shows: one in ten, or one in a hundred.
_BROKEN_STORES = {
    mutations.MigrateWithoutLooking: (526, 834, 853),
    mutations.FinishWithoutGuid: (12, 37, 55),
    mutations.StatusKeepsItsVersion: (4, 5, 7),
    mutations.BeginWithoutMark: (41, 54, 120),
    mutations.PutWithoutComparison: (0, 1, 2),
    mutations.DeleteWithoutTombstone: (5, 8, 13),
    mutations.SettingsWriteTheStatus: (45, 350),
}


def _broken(mutation: type[World]) -> Report:
    """The first of its seeds in which the mutation shows."""
    plans = (plan_of(seed, "memory") for seed in _BROKEN_STORES[mutation])
    reports = (run_plan(plan, mutation.store_class) for plan in plans)
    return next(report for report in reports if report.violation is not None)


@pytest.mark.parametrize("mutation", _BROKEN_STORES, ids=lambda mutation: mutation.__name__)
def test_a_broken_store_is_found_out(mutation: type[World]) -> None:
    assert run_plan(_broken(mutation).plan).violation is None


def _first_violation(seeds: tuple[int, ...]) -> str:
    violations = (run_plan(plan_of(seed, "memory")).violation for seed in seeds)
    return next((violation.promise for violation in violations if violation is not None), "")


def test_a_scheduler_that_counts_delays_from_a_clock_that_is_behind_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DisciplinedClock, "latest_us", DisciplinedClock.now_us)
    assert _first_violation((6, 20, 36)) == "no delay ends early"


def test_what_was_deleted_and_created_again_within_one_put_is_no_violation() -> None:
    assert _first_violation((1305,)) == ""


def test_a_worker_that_runs_two_suspects_at_once_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_room_for_many(self: Suspects, capacity: Capacity) -> None:
        vars(self).update(_alone=capacity.resource(100), _needs={})

    monkeypatch.setattr(Suspects, "__init__", with_room_for_many)
    assert _first_violation((69,)) == "a process runs one suspect at a time"


def test_an_update_that_plans_afresh_what_it_should_not_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_afresh(_stored: Spec, spec: Spec, _status: Status, _guid: str, now_us: int) -> Updated:
        return Updated(accept(spec, now_us)[0], ScheduledAction.PLANNED_AFRESH)

    monkeypatch.setattr("clepsydra.scheduler.writes.mutations.update_plan", always_afresh)
    assert _first_violation((2, 4, 5)) == "only a change of the schedule moves a plan"


def test_a_change_that_gives_an_occurrence_another_key_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scheduler.writes.commands", "core.action.update"):
        monkeypatch.setattr(f"clepsydra.{module}.carry_over", lambda *_: None)
    assert _first_violation((1, 5, 8)) == "an occurrence keeps its key"


class Forgetful(MemoryStore):
    """Loses an action, row and all, when another is changed: every count in the tables still adds up."""

    def _put(self, put: Put) -> PutResult:
        for action_id in [each for each in self.actions if each < put.action.action_id]:
            guid = self.actions.pop(action_id).guid
            self.rows = {key: row for key, row in self.rows.items() if key[4] != guid}
        return super()._put(put)


def test_an_action_that_vanishes_without_a_trace_is_found_missing() -> None:
    violations = [run_plan(plan_of(seed, "memory"), Forgetful).violation for seed in range(8)]
    assert any("an action is never lost" in str(violation) for violation in violations)


def test_a_failing_plan_is_made_smaller_and_fails_in_the_same_way() -> None:
    store = mutations.PutWithoutComparison.store_class
    found = _broken(mutations.PutWithoutComparison)
    assert found.violation is not None
    promise = found.violation.promise
    sizes: list[int] = []

    def fails(plan: Plan) -> bool:
        violation = run_plan(plan, store).violation
        return violation is not None and violation.promise == promise

    smallest = shrink(found.plan, fails, lambda plan: sizes.append(size_of(plan)))
    assert fails(smallest)
    assert sizes == sorted(sizes, reverse=True)
    assert size_of(smallest) < size_of(found.plan) / 2
    # Nothing more can be left out.
    assert shrink(smallest, fails) == smallest


def test_a_broken_promise_is_told_as_a_history_that_can_be_read() -> None:
    found = _broken(mutations.DeleteWithoutTombstone)
    lines = list(found.history.lines())
    assert any("oracle           VIOLATION" in line for line in lines)
    # When, who, what; times are seconds since the start and guids are short.
    assert all(re.match(r" *\d+\.\d{6}  \S+ +\S+", line) for line in lines)
    assert any(re.search(r"scheduler-\d#\d +put +a\d [0-9a-f]{6} @\d+\.\d{6} done", line) for line in lines)
    assert not re.search(r"[0-9a-f]{32}", "".join(line for line in lines if "VIOLATION" not in line))


def test_the_command_shows_a_seed_and_its_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "6", "--store", "memory", "--verbose"]) == 0
    told = capsys.readouterr().out
    assert "nemesis          leaves" in told
    assert told.endswith("no promise was broken\n")


def test_the_command_says_that_there_is_nothing_to_shrink(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shrink", "6"]) == 0
    assert capsys.readouterr().out == "seed 6 breaks nothing\n"
