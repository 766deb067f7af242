"""The first minute of the README, with the installed command."""

from pathlib import Path

from tests.end_to_end.conftest import StartUp
from tests.end_to_end.processes import clepsydra, eventually


def test_the_first_action_fires(start_up: StartUp, tmp_path: Path) -> None:
    up = start_up()

    added = clepsydra("add", "hello", "--in", "500ms", "--log", "hello", "--server", up.address, folder=tmp_path)
    assert (added.code, added.err) == (0, "")
    assert added.out.startswith("hello is scheduled for ")

    fired = up.wait_for_event("hello", action_id="hello")
    assert fired["attempt_number"] == 1
    assert fired["timestamp"] > fired["scheduled_time"]

    # When the process has stopped, the outcome is written.
    assert up.stop() == 0
    again = start_up()
    action = clepsydra("get", "hello", "--json", folder=tmp_path, CLEPSYDRA_SERVER=again.address).json()
    assert action["status"]["state"] == "SUCCEEDED"
    assert action["status"]["counters"]["runs"] == "1"


def test_up_suggests_a_first_command(start_up: StartUp) -> None:
    up = start_up()
    assert up.stop() == 0
    assert up.out[0] == f"Clepsydra listens on {up.address}, its store is sqlite:///clepsydra.db with 8 shards."
    suggested = next(line for line in up.out if " add hello " in line)
    assert suggested.endswith(f'add hello --in 5s --log "hello" --server {up.address}')


def test_stopping_leaves_no_lock_held(start_up: StartUp, tmp_path: Path) -> None:
    up = start_up()

    def states() -> set[str]:
        locks = clepsydra("locks", "--json", "--store", up.store, folder=tmp_path)
        return {shard["state"] for shard in locks.json()}

    eventually(states, lambda seen: seen == {"held"})
    assert up.stop() == 0
    assert states() == {"free"}
