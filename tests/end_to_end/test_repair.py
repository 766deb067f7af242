"""`audit --repair`: its plan, its question, its work, and what it leaves alone."""

import asyncio
import json
import signal
from pathlib import Path

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import DAY_US, duration
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.sqlite import SqliteStore
from clepsydra.v1.action_pb2 import LogLine, Meta, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import CreateActionRequest
from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.damage import damage, make_read_only
from tests.end_to_end.processes import clepsydra, eventually

LOSE_ONE = (
    "DELETE FROM processing_queue WHERE action_id = 'one'",
    "DELETE FROM incoming_queue WHERE action_id = 'one'",
)
DOUBLE_TWO = (
    "INSERT INTO incoming_queue SELECT 5, 1, meta_action_id, meta_action_guid, status_scheduled_at "
    "FROM scheduled_actions WHERE meta_action_id = 'two'",
)
ORPHANS = (
    "INSERT INTO incoming_queue VALUES (1, 1, 'nobody', 'nothing', 1)",
    "INSERT INTO incoming_queue VALUES (77, 1, 'nobody', 'nothing', 1)",
    "INSERT INTO processing_queue (shard_id, scheduled_at, action_id, action_guid, added_to_incoming_queue_at) "
    "VALUES (2, 4000000000000000, 'nobody', 'nothing', 1)",
)


@pytest.fixture
def broken(command: Command, tmp_path: Path) -> Path:
    """A store without servers. One action has no row, one has two rows, one is sound; and there are 3 old rows."""
    assert command("init").code == 0
    store = tmp_path / "clepsydra.db"
    asyncio.run(_add(store, "one", "two", "three"))
    damage(store, *LOSE_ONE, *DOUBLE_TWO, *ORPHANS)
    return store


async def _add(path: Path, *action_ids: str) -> None:
    """Add actions by a scheduler in this process."""
    store = await SqliteStore.open(str(path), SystemClock())
    scheduler = Scheduler(store, SystemClock(), Ids.from_system(), SchedulerSettings())
    spec = Spec(schedule=Schedule(delay=duration(DAY_US)), log=LogLine(message="x"))
    for action_id in action_ids:
        await scheduler.create(CreateActionRequest(action=ScheduledAction(meta=Meta(id=action_id), spec=spec)))
    await store.close()


def _rows_of(store: Path, action_id: str) -> list[tuple[object, ...]]:
    return _query(store, "SELECT * FROM incoming_queue WHERE action_id = ?", action_id)


def _guid_of(store: Path, action_id: str) -> object:
    return _query(store, "SELECT meta_action_guid FROM scheduled_actions WHERE meta_action_id = ?", action_id)[0][0]


def _query(store: Path, statement: str, action_id: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(store))
    connection.set_busy_timeout(10_000)
    rows = connection.execute(statement, (action_id,)).fetchall()
    connection.close()
    return rows


def test_a_dry_run_shows_the_plan_and_changes_nothing(broken: Path, command: Command) -> None:
    before = command("audit", "--json").json()
    shown = command("audit", "--repair", "--dry-run")
    assert shown.code == 1
    assert "action one (guid " in shown.out
    assert "action two (guid " in shown.out
    assert "rows lie in shards that the store does not have: 77" in shown.out
    assert shown.out.splitlines()[-1] == "A repair would give 2 actions a new life with one row, and remove 5 rows."
    assert command("audit", "--json").json() == before

    as_json = command("audit", "--repair", "--dry-run", "--json")
    assert as_json.code == 1
    assert as_json.json() == {"before": before, "plan": {"actions": 2, "rows": 5}}


@pytest.mark.parametrize("slice_size", ["1", "1000"])
def test_a_repair_without_asking(broken: Path, command: Command, slice_size: str) -> None:
    three = _rows_of(broken, "three")
    done = command("audit", "--repair", "--yes", "--slice", slice_size, "--pause", "0")
    assert done.code == 0
    repaired, after = done.out.splitlines()[-2:]
    assert repaired == "2 actions got a new life with one row, 5 rows were removed."
    assert after == "No violation: 3 actions, each with exactly one live row; 0 old rows."
    assert _rows_of(broken, "three") == three
    again = command("audit", "--repair", "--yes")
    assert (again.code, again.out.splitlines()[-1]) == (0, "There is nothing to repair.")


def test_a_repair_in_json(broken: Path, command: Command) -> None:
    done = command("audit", "--repair", "--yes", "--json")
    assert done.code == 0
    report = done.json()
    assert (report["before"]["ok"], report["after"]["ok"]) == (False, True)
    assert (report["repaired"]["actions"], report["repaired"]["rows"]) == (2, 5)


@pytest.mark.parametrize(
    ("answer", "code", "without_row"), [("y\n", 0, 0), ("yes\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1)], ids=repr
)
def test_it_asks_first(broken: Path, tmp_path: Path, answer: str, code: int, without_row: int) -> None:
    asked = clepsydra("audit", "--repair", folder=tmp_path, given=answer)
    assert asked.code == code
    assert asked.err == "Repair it? [y/N] "
    assert json.loads(clepsydra("audit", "--json", folder=tmp_path).out)["without_row"] == without_row


def test_nothing_is_repaired_without_an_answer(broken: Path, tmp_path: Path) -> None:
    asked = clepsydra("audit", "--repair", folder=tmp_path)
    assert asked.code == 2
    assert "--yes repairs without asking" in asked.err.splitlines()[-1]
    assert clepsydra("audit", folder=tmp_path).code == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--yes"], "--yes says how to repair, and needs --repair"),
        (["--dry-run"], "--dry-run says how to repair, and needs --repair"),
        (["--slice", "5"], "--slice says how to repair, and needs --repair"),
        (["--pause", "1s"], "--pause says how to repair, and needs --repair"),
        (["--repair", "--json"], "--repair with --json cannot ask"),
        (["--repair", "--slice", "0"], "0 is not in the range"),
    ],
)
def test_contradicting_flags_are_refused(command: Command, arguments: list[str], sentence: str) -> None:
    command("init")
    refused = command("audit", *arguments)
    assert refused.code == 2
    assert sentence in refused.err


def test_an_action_that_cannot_be_decoded_is_not_repaired(broken: Path, command: Command) -> None:
    damage(broken, "UPDATE scheduled_actions SET spec = x'ff' WHERE meta_action_id = 'one'")
    done = command("audit", "--repair", "--yes")
    assert done.code == 1
    assert "2 actions got a new life with one row" in done.out
    assert "0 have no live row, 0 have more than one, 1 cannot be decoded" in done.out.splitlines()[-1]


def test_a_read_only_store_is_audited_and_not_repaired(broken: Path, command: Command) -> None:
    make_read_only(broken)
    assert command("audit", "--repair", "--dry-run").code == 1
    refused = command("audit", "--repair", "--yes")
    assert refused.code == 5
    assert "is read-only" in refused.err


def test_a_repair_beside_a_running_scheduler_and_worker(start_up: StartUp, command: Command, tmp_path: Path) -> None:
    up = start_up()
    at = ("--server", up.address)
    for name in ("one", "two"):
        command("add", name, "--in", "1d", "--log", f"done {name}", *at)
    command("add", "clock", "--every", "1s", "--log", "tick", *at)
    damage(tmp_path / "clepsydra.db", *LOSE_ONE, *DOUBLE_TWO)
    done = command("audit", "--repair", "--yes")
    assert done.code == 0, done
    # A worker finds the row of each action and runs it.
    assert command("run", "one", "two", *at).code == 0
    states = eventually(
        lambda: [json.loads(line)["status"]["state"] for line in command("list", "--json", *at).out.splitlines()],
        lambda states: states.count("SUCCEEDED") == 2,
    )
    assert sorted(states) == ["SCHEDULED", "SUCCEEDED", "SUCCEEDED"]
    assert up.stop() == 0
    assert command("audit").code == 0


def test_ctrl_c_stops_after_a_slice_and_the_same_command_continues(broken: Path, start: Start) -> None:
    before = _guid_of(broken, "one")
    repairing = start("audit", "--repair", "--yes", "--slice", "1", "--pause", "1h")
    eventually(lambda: _guid_of(broken, "one"), lambda guid: guid != before)
    repairing.send(signal.SIGINT)
    assert repairing.ended() == 130
    assert repairing.out[-2:] == [
        "1 action got a new life with one row, 0 rows were removed.",
        "The repair was stopped; the same command continues it.",
    ]
    second = start("audit", "--repair", "--yes")
    assert second.ended() == 0
    assert "1 action got a new life with one row, 5 rows were removed." in second.out
