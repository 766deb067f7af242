"""`locks`, `stats` and `audit` on a sound store, and on a damaged one."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.damage import damage
from tests.end_to_end.processes import eventually


@pytest.fixture
def store(start_up: StartUp, command: Command, tmp_path: Path) -> Path:
    """A store without servers, with two actions and a stale row."""
    up = start_up()
    command("add", "one", "--in", "1d", "--log", "x", "--server", up.address)
    command("add", "two", "--in", "2d", "--log", "x", "--server", up.address)
    command("update", "two", "--in", "3d", "--server", up.address)
    assert up.stop() == 0
    return tmp_path / "clepsydra.db"


def test_a_sound_store(store: Path, command: Command) -> None:
    audit = command("audit")
    assert audit.code == 0
    assert audit.out.startswith("No violation: 2 actions, each with exactly one live row; ")

    report = command("audit", "--json").json()
    assert report["ok"]
    assert (report["actions"], report["live_rows"], report["violations"]) == (2, 2, [])

    stats = command("stats", "--json").json()
    assert (stats["actions"], stats["shards"], stats["locked_shards"], stats["due_rows"]) == (2, 8, 0, 0)
    assert (stats["states"], stats["waiting"], stats["running"], stats["kept"]) == ({"SCHEDULED": 2}, 2, 0, 0)
    assert "waiting to run            2, 0 of them due" in command("stats").out

    locks = command("locks", "--json").json()
    assert [shard["shard"] for shard in locks] == list(range(8))
    assert sum(shard["incoming_rows"] + shard["processing_rows"] for shard in locks) >= 2
    header, *rows = command("locks").out.splitlines()
    assert header.split() == [
        "SHARD",
        "STATE",
        "BY",
        "SINCE",
        "HEARTBEAT",
        "WAITING",
        "OLDEST",
        "DUE",
        "RUNNING",
        "KEPT",
    ]
    assert [row.split()[:2] for row in rows] == [[str(n), "free"] for n in range(8)]


def test_counts_tell_apart_what_waits_what_has_ended_and_what_was_deleted(start_up: StartUp, command: Command) -> None:
    up = start_up()

    def ask(*arguments: str) -> None:
        assert command(*arguments, "--server", up.address).code == 0

    ask("add", "later", "--in", "1d", "--log", "x")
    ask("add", "held", "--in", "1d", "--log", "x")
    ask("pause", "held")
    ask("add", "gone", "--in", "1d", "--log", "x")
    ask("rm", "gone")
    ask("add", "done", "--log", "x", "--keep-success", "1h")
    stats = eventually(lambda: command("stats", "--json").json(), lambda stats: stats["states"].get("SUCCEEDED") == 1)

    assert (stats["actions"], stats["deleted"]) == (3, 1)
    assert stats["states"] == {"SCHEDULED": 1, "PAUSED": 1, "SUCCEEDED": 1}
    assert (stats["waiting"], stats["due"], stats["running"], stats["kept"]) == (1, 0, 0, 3)
    assert (
        stats["next_time"]
        == command("get", "later", "--json", "--server", up.address).json()["status"]["scheduled_time"]
    )
    locks = command("locks", "--json").json()
    assert [sum(shard[name] for shard in locks) for name in ("waiting", "running", "kept")] == [1, 0, 3]
    assert [shard["next_time"] for shard in locks if shard["next_time"]] == [stats["next_time"]]
    audit = command("audit", "--json").json()
    assert (audit["actions"], audit["deleted"], audit["live_rows"]) == (3, 1, 4)
    assert command("audit").out.startswith(
        "No violation: 3 actions and 1 deleted one, each with exactly one live row; "
    )


def test_an_action_without_a_row_is_a_violation(store: Path, command: Command) -> None:
    damage(store, "DELETE FROM processing_queue WHERE action_id = 'one'")
    damage(store, "DELETE FROM incoming_queue WHERE action_id = 'one'")
    audit = command("audit")
    assert audit.code == 1
    assert audit.out.startswith("action one (guid ")
    assert "has no live row" in audit.out
    assert "2 actions: 1 have no live row" in audit.out
    as_json = command("audit", "--json")
    assert as_json.code == 1
    assert [(v["id"], v["rows"]) for v in as_json.json()["violations"]] == [("one", [])]


def test_an_action_with_two_rows_is_a_violation(store: Path, command: Command) -> None:
    damage(
        store,
        "INSERT INTO incoming_queue "
        "SELECT 5, 1, meta_action_id, meta_action_guid, status_scheduled_at FROM scheduled_actions "
        "WHERE meta_action_id = 'one'",
    )
    as_json = command("audit", "--json")
    assert as_json.code == 1
    [violation] = as_json.json()["violations"]
    assert violation["id"] == "one"
    assert len(violation["rows"]) == 2
    assert "has 2 live rows: " in command("audit").out
    # Violations that are not named are counted too.
    assert command("audit", "--limit", "0", "--json").json()["with_several_rows"] == 1


def test_an_action_that_cannot_be_decoded_is_reported(store: Path, command: Command) -> None:
    damage(store, "UPDATE scheduled_actions SET spec = x'ff' WHERE meta_action_id = 'two'")
    audit = command("audit")
    assert audit.code == 1
    assert "action two cannot be decoded" in audit.out
    report = command("audit", "--json").json()
    assert (report["ok"], report["undecodable"], report["undecodable_ids"]) == (False, 1, ["two"])
    assert report["violations"] == []


def test_the_locks_of_a_killed_worker_become_stale(start_up: StartUp, command: Command) -> None:
    up = start_up("--name", "mortal")
    # A short life of locks, so that the test need not wait long.
    quick = ["--set", "worker.lock_life_ms=100", "--set", "worker.heartbeat_ms=10"]

    def locks(*flags: str) -> list[dict[str, Any]]:
        shards: list[dict[str, Any]] = command("locks", "--json", *flags).json()
        return shards

    held = eventually(locks, lambda shards: all(shard["state"] == "held" for shard in shards))
    assert {shard["by"] for shard in held} == {"mortal"}
    assert all(shard["since"] for shard in held)
    up.send(signal.SIGKILL)
    assert up.ended() == 137
    stale = eventually(lambda: locks(*quick), lambda shards: all(shard["state"] == "stale" for shard in shards))
    assert all(shard["heartbeat_age_ms"] >= 100 and shard["by"] == "mortal" for shard in stale)


def test_watching_locks(start: Start, command: Command) -> None:
    command("init", "--shards", "2")
    watch = start("locks", "--watch", "0.1", "--json")
    first, third = json.loads(watch.wait_for_out_line(0)), json.loads(watch.wait_for_out_line(2))
    assert [shard["shard"] for shard in first] == [shard["shard"] for shard in third] == [0, 1]
    watch.send(signal.SIGINT)
    assert watch.ended() == 130
    assert "".join(watch.err) == ""
