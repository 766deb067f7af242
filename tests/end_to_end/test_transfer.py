"""`clepsydra export` and `clepsydra import`: everything goes on as it stood, and nothing runs twice."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.processes import Result, Up, eventually

_OWN = ("guid", "etag", "revision", "update_time")


class Site:
    """An installation, and the command that asks it."""

    def __init__(self, up: Up, command: Command) -> None:
        self.up = up
        self._command = command

    def __call__(self, *arguments: str) -> Result:
        return self._command(*arguments, "--server", self.up.address)

    def actions(self) -> dict[str, Any]:
        """All actions by their ids, without what each installation chooses itself."""
        found = {}
        for line in self("export").out.splitlines():
            action = json.loads(line)
            for name in _OWN:
                del action["meta"][name]
            found[action["meta"]["id"]] = action
        return found


@pytest.fixture
def old(start_up: StartUp, command: Command, tmp_path: Path) -> Site:
    return Site(start_up("--store", f"sqlite:///{tmp_path}/old.db"), command)


@pytest.fixture
def new(start_up: StartUp, command: Command, tmp_path: Path) -> Site:
    return Site(start_up("--store", f"sqlite:///{tmp_path}/new.db"), command)


def test_an_installation_moves_as_it_stands(old: Site, new: Site, tmp_path: Path) -> None:
    old("add", "later", "--in", "1d", "--log", "later", "--label", "team=ops")
    old("add", "hourly", "--every", "1h", "--log", "hourly")
    old("add", "held", "--log", "never", "--in", "1h")
    old("pause", "held")
    old("add", "retried", "--http", "http://127.0.0.1:1/", "--retry-delay", "1h", "--retry-max-delay", "1h")
    old("add", "done", "--log", "ran once")
    states = {"hourly": "SCHEDULED", "retried": "RETRYING", "done": "SUCCEEDED"}
    before = eventually(
        old.actions,
        lambda actions: (
            all(actions[name]["status"]["state"] == state for name, state in states.items())
            and "last_attempt" in actions["hourly"]["status"]
        ),
    )

    exported = old("export", "actions.jsonl")
    assert (exported.code, exported.out) == (0, "")
    assert exported.err == "5 actions exported to actions.jsonl, 1 of them paused.\n"
    assert (tmp_path / "actions.jsonl").stat().st_mode & 0o777 == 0o600

    imported = new("import", "actions.jsonl")
    assert imported.code == 0
    assert imported.out == "4 created, 1 skipped because they have ended (--ended takes them too).\n"
    assert new.actions() == {name: action for name, action in before.items() if name != "done"}

    with_ended = new("import", "actions.jsonl", "--ended", "--json")
    assert with_ended.json() == {
        "created": 1, "replaced": 0, "repeated": 0, "existing": 4, "ended": 0, "failed": 0,
    }  # fmt: skip
    assert new.actions() == before
    # Nothing of it has run here.
    new.up.stop()
    assert not [line for line in new.up.err if "ran once" in line or "hourly" in line]


def test_export_writes_to_the_standard_output_and_leaves_out_what_has_ended_if_asked(old: Site) -> None:
    old("add", "done", "--log", "x")
    old("add", "later", "--in", "1d", "--log", "x")
    eventually(lambda: old("get", "done", "--json").json()["status"]["state"], lambda state: state == "SUCCEEDED")

    exported = old("export", "--no-ended")

    assert [json.loads(line)["meta"]["id"] for line in exported.out.splitlines()] == ["later"]
    assert exported.err == "1 action exported, 0 of them paused; 1 ended action left out.\n"
    assert len(old("export", "--output", "-").out.splitlines()) == 2


def test_existing_actions_are_skipped_replaced_or_refused(old: Site, tmp_path: Path) -> None:
    old("add", "a", "--in", "1d", "--log", "first")
    old("export", "a.jsonl")
    old("update", "a", "--log", "second")

    def message() -> str:
        return str(old.actions()["a"]["spec"]["log"]["message"])

    assert old("import", "a.jsonl").out == "1 skipped because they exist.\n"
    assert message() == "second"
    refused = old("import", "a.jsonl", "--existing", "error")
    assert refused.code == 1
    assert refused.err == "clepsydra: a.jsonl:1: an action 'a' exists already: update it, or choose another id\n"
    assert old("import", "a.jsonl", "--existing", "replace").out == "1 replaced.\n"
    assert message() == "first"
    old("update", "a", "--log", "third")
    repeated = old("import", "a.jsonl", "--existing", "replace")
    assert repeated.out == "1 taken by an earlier run of this import.\n"
    assert message() == "third"
    assert old("import", "a.jsonl", "--existing", "replace", "--request-id", "once more").out == "1 replaced.\n"
    assert message() == "first"
    # Another question gets its own answer, not that the lines were sent before with another flag.
    refused = old("import", "a.jsonl", "--existing", "error")
    assert refused.err == "clepsydra: a.jsonl:1: an action 'a' exists already: update it, or choose another id\n"
    old("rm", "a")
    assert old("import", "a.jsonl", "--existing", "error").out == "1 created.\n"


def test_what_is_wrong_is_named_by_its_line_in_the_order_of_the_file(old: Site, tmp_path: Path) -> None:
    old("add", "a", "--in", "1d", "--log", "x")
    [line] = old("export").out.splitlines()
    action = json.loads(line)
    new_action = {"meta": {"id": "new"}, "spec": {"log": {}}}
    nonsense = {**action, "status": {"state": "DELETED"}}
    no_object = "[]"
    wrong_spec = {**action, "spec": {**action["spec"], "attempt_timeout": "0s"}}
    lines = [json.dumps(nonsense), "{", json.dumps(wrong_spec), "", json.dumps(new_action), line, no_object]
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines))

    imported = old("import", "mixed.jsonl")

    assert imported.code == 1
    assert imported.out == "1 skipped because they exist, 5 refused.\n"
    errors = imported.err.splitlines()
    assert errors[0].startswith("clepsydra: mixed.jsonl:1: status.state: must be one of ")
    assert errors[1].startswith("clepsydra: mixed.jsonl:2: not an action in JSON")
    assert errors[2].startswith("clepsydra: mixed.jsonl:3: spec.attempt_timeout: must last from")
    assert errors[3].startswith("clepsydra: mixed.jsonl:5: the line has no status, so it is a new action")
    assert errors[4].startswith("clepsydra: mixed.jsonl:7: not an action in JSON")


def test_add_refuses_lines_that_carry_a_status(old: Site, tmp_path: Path) -> None:
    old("add", "a", "--in", "1d", "--log", "x")
    (tmp_path / "listed.jsonl").write_text(old("list", "--all", "--json").out)

    added = old("add", "--from-file", "listed.jsonl")

    assert added.code == 1
    assert added.err.startswith("clepsydra: listed.jsonl:1: the line has a status, and a new action has none")
    assert "use `clepsydra import`" in added.err


def test_an_interrupted_import_says_how_many_were_taken_and_goes_on(
    old: Site, new: Site, start: Start, tmp_path: Path
) -> None:
    spec = {"log": {}, "schedule": {"delay": "1000s"}}
    lines = [json.dumps({"meta": {"id": f"a-{n}"}, "spec": spec}) for n in range(600)]
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    assert old("add", "--from-file", "new.jsonl").code == 0
    old("export", "actions.jsonl")
    text = (tmp_path / "actions.jsonl").read_bytes()
    # The import waits for more input, with a batch of lines taken.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start("import", "pipe", "--server", new.up.address)
    with pipe.open("wb") as writer:
        writer.write(b"".join(text.splitlines(keepends=True)[:500]))
        writer.flush()
        eventually(lambda: len(new.actions()), lambda count: count == 500)
        process.send(signal.SIGTERM)
        assert process.ended() == 143
    assert process.err == ["clepsydra: interrupted: 500 actions were taken so far; the same command goes on"]

    assert new("import", "actions.jsonl").out == "100 created, 500 skipped because they exist.\n"
    assert new.actions() == old.actions()


def test_a_scheduler_that_goes_away_is_no_loss(old: Site, new: Site) -> None:
    old("add", "a", "--in", "1d", "--log", "x")
    old("export", "actions.jsonl")
    new.up.kill()

    failed = new("import", "actions.jsonl")

    assert failed.code == 5
    assert "0 actions were taken so far; the same command goes on" in failed.err


def test_a_file_that_cannot_be_written_is_a_sentence(old: Site, tmp_path: Path) -> None:
    failed = old("export", "missing/actions.jsonl")
    assert failed.code == 2
    assert failed.err == "clepsydra: the file 'missing/actions.jsonl' cannot be written: No such file or directory\n"
    assert old("export", "a", "--output", "b").code == 2
    assert old("export", "/dev/null").code == 0
