"""Every command that calls a scheduler, with a running one."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import Command
from tests.end_to_end.processes import Result, Up


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler for all tests of this file; each test uses other ids."""
    up = Up(tmp_path_factory.mktemp("server"))
    try:
        up.wait_until_ready()
        yield up.address
    finally:
        up.kill()


@pytest.fixture
def ask(command: Command, server: str) -> Callable[..., Result]:
    return lambda *arguments: command(*arguments, "--server", server)


Ask = Callable[..., Result]


_EVERY_FLAG = [
    ("--at", "2090-01-01T07:30:00+02:00"),
    ("--every", "1h30m"),
    ("--drift",),
    ("--until", "2091-01-01T00:00:00Z"),
    ("--max-runs", "7"),
    ("--http", "https://example.com/x"),
    ("--method", "PUT"),
    ("--header", "X-One: 1"),
    ("--header", "X-Two: a:b"),
    ("--body", "@body.txt"),
    ("--timeout", "5m"),
    ("--start-deadline", "10s"),
    ("--max-attempts", "3"),
    ("--retry-delay", "500ms"),
    ("--retry-multiplier", "1.5"),
    ("--retry-max-delay", "1m"),
    ("--retry-jitter", "0"),
    ("--retry-max-elapsed", "1d"),
    ("--interruption-limit", "4"),
    ("--keep-success", "0"),
    ("--keep-failure", "2h"),
    ("--label", "team=billing"),
    ("--label", "eu=yes"),
]


def test_every_flag_of_add_reaches_its_field_and_get_shows_it(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "body.txt").write_bytes(b"water\x00")
    added = ask("add", "all-flags", *(part for flag in _EVERY_FLAG for part in flag), "--json").json()
    assert added["meta"]["labels"] == {"team": "billing", "eu": "yes"}
    assert added["spec"] == {
        "schedule": {
            "start_time": "2090-01-01T05:30:00Z",
            "periodic": {"interval": "5400s", "mode": "DRIFT", "end_time": "2091-01-01T00:00:00Z", "max_runs": "7"},
        },
        "retry": {
            "first_delay": "0.500s",
            "multiplier": 1.5,
            "max_delay": "60s",
            "jitter": 0.0,
            "max_attempts": 3,
            "max_elapsed": "86400s",
        },
        "attempt_timeout": "300s",
        "start_deadline": "10s",
        "retention": {"after_success": "0s", "after_failure": "7200s"},
        "interruption_limit": 4,
        "http": {
            "method": "PUT",
            "url": "https://example.com/x",
            "headers": [{"name": "X-One", "value": "1"}, {"name": "X-Two", "value": "a:b"}],
            "body": "d2F0ZXIA",
        },
    }

    shown = _lines(ask("get", "all-flags").out)
    assert (
        shown["recurrence"] == "every 1h30m, after the end of the last run, until 2091-01-01T00:00:00Z, 7 runs at most"
    )
    assert shown["target"] == "PUT https://example.com/x"
    assert {name: shown[name] for name in list(shown)[5:-4]} == {
        "start": "2090-01-01T05:30:00Z",
        "headers": "X-One, X-Two",
        "body": "6 bytes",
        "timeout": "5m",
        "start deadline": "10s",
        "attempts per run": "3",
        "retry delay": "500ms",
        "retry multiplier": "1.5",
        "retry max delay": "1m",
        "retry jitter": "0",
        "retry max elapsed": "1d",
        "interruption limit": "4",
        "keep success": "0s",
        "keep failure": "2h",
        "labels": "eu=yes, team=billing",
    }


def _lines(table: str) -> dict[str, str]:
    """The names and values that `get` prints."""
    pairs = [re.split(" {2,}", line.rstrip(), maxsplit=1) for line in table.splitlines()]
    return dict(pairs)


def test_get_leaves_out_what_has_its_default(ask: Ask) -> None:
    ask("add", "plain", "--in", "1d", "--log", "plain")
    shown = _lines(ask("get", "plain").out)
    assert list(shown) == [
        *("id", "state", "next", "recurrence", "target", "start", "counters", "created", "updated", "etag")
    ]
    assert shown["state"] == "SCHEDULED"
    assert shown["recurrence"] == "once"
    assert shown["counters"] == "none yet"


def test_a_handler_with_its_payload(ask: Ask) -> None:
    added = ask(
        "add", "--in", "1d", "--handler", "h", "--payload", "@@x", "--content-type", "text/plain", "--json"
    ).json()
    assert added["meta"]["id"]
    assert added["spec"]["handler"] == {"name": "h", "payload": "QHg=", "content_type": "text/plain"}
    shown = _lines(ask("get", added["meta"]["id"]).out)
    assert (shown["target"], shown["payload"], shown["content type"]) == ("handler h", "2 bytes", "text/plain")


def test_from_add_to_rm(ask: Ask) -> None:
    assert ask("add", "life", "--in", "1d", "--log", "life").code == 0
    assert ask("add", "life", "--in", "1d", "--log", "life").code == 4

    shown = ask("get", "life")
    assert shown.code == 0
    assert "SCHEDULED" in shown.out
    assert 'log "life"' in shown.out

    assert ask("pause", "life").out == "life is paused\n"
    assert ask("pause", "life").code == 4
    assert ask("resume", "life").out.startswith("life is scheduled for ")

    removed = ask("rm", "life")
    assert (removed.code, removed.out) == (0, "life is removed\n")
    assert ask("get", "life").code == 3
    missing = ask("rm", "life")
    assert (missing.code, missing.err) == (3, "clepsydra: there is no action 'life'\n")
    assert ask("rm", "life", "--allow-missing").code == 0


def test_update_changes_only_the_given_fields(ask: Ask) -> None:
    before = ask("add", "changing", "--in", "1d", "--log", "one", "--max-attempts", "3", "--json").json()
    after = ask("update", "changing", "--every", "2h", "--retry-delay", "3s", "--json").json()
    assert after["spec"]["schedule"]["start_time"] == before["spec"]["schedule"]["start_time"]
    assert after["spec"]["schedule"]["periodic"] == {"interval": "7200s", "mode": "FIXED_RATE"}
    assert after["spec"]["retry"] == {**before["spec"]["retry"], "first_delay": "3s"}
    assert after["spec"]["log"] == {"message": "one"}
    assert after["meta"]["guid"] != before["meta"]["guid"]

    once = ask("update", "changing", "--once", "--clear", "spec.retry.max_attempts", "--json").json()
    assert "periodic" not in once["spec"]["schedule"]
    assert once["spec"]["retry"]["max_attempts"] == 20

    relabelled = ask("update", "changing", "--label", "a=b", "--json").json()
    assert relabelled["meta"]["labels"] == {"a": "b"}
    assert relabelled["meta"]["guid"] == once["meta"]["guid"]


def test_update_says_what_became_of_the_plan(ask: Ask) -> None:
    ask("add", "planned", "--in", "1d", "--log", "one")
    kept = ask("update", "planned", "--keep-success", "2d", "--max-attempts", "5")
    assert kept.out.splitlines()[1:] == ["the plan is kept"]
    other = ask("update", "planned", "--log", "two")
    assert other.out.splitlines()[1:] == ["the target changed: the plan goes on under a new life"]
    assert ask("update", "planned", "--in", "2d").out.splitlines()[1].startswith("planned afresh for 20")
    ask("pause", "planned")
    assert ask("update", "planned", "--in", "3d").out.splitlines()[1:] == ["planned afresh, and paused"]


def test_update_needs_the_action_and_its_etag(ask: Ask) -> None:
    assert ask("update", "guarded", "--log", "x").code == 3
    created = ask("update", "guarded", "--log", "x", "--in", "1d", "--allow-missing", "--json").json()
    refused = ask("update", "guarded", "--log", "y", "--etag", "another")
    assert refused.code == 4
    assert "has another etag by now" in refused.err
    assert ask("update", "guarded", "--log", "y", "--etag", created["meta"]["etag"]).code == 0


def test_update_from_a_file_replaces_the_whole_action(ask: Ask, tmp_path: Path) -> None:
    action = ask("add", "whole", "--in", "1d", "--log", "one", "--max-attempts", "3", "--json").json()
    action["spec"] = {"log": {"message": "two"}, "schedule": {"start_time": "2090-01-01T00:00:00Z"}}
    (tmp_path / "action.json").write_text(json.dumps(action))
    updated = ask("update", "whole", "--from-file", "action.json", "--json").json()
    assert updated["spec"]["log"] == {"message": "two"}
    assert updated["spec"]["retry"]["max_attempts"] == 20


def test_run_makes_an_action_due_now(ask: Ask) -> None:
    before = ask("add", "eager", "--in", "1d", "--log", "eager", "--json").json()
    now = ask("run", "eager", "--json").json()
    assert now["status"]["scheduled_time"] < before["status"]["scheduled_time"]


def test_validate_only_changes_nothing(ask: Ask) -> None:
    assert ask("add", "unborn", "--log", "x", "--validate-only").out.startswith("Valid, and not added: unborn is ")
    assert ask("get", "unborn").code == 3
    assert ask("add", "kept", "--in", "1d", "--log", "x").code == 0
    assert ask("update", "kept", "--log", "y", "--validate-only").out.startswith("Valid, and not changed: kept is ")
    assert ask("rm", "kept", "--validate-only").out == "kept can be removed\n"
    assert ask("get", "kept", "--json").json()["spec"]["log"] == {"message": "x"}


def test_a_request_id_makes_it_safe_to_repeat(ask: Ask) -> None:
    arguments = ("add", "--in", "1d", "--log", "x", "--request-id", "order-1", "--json")
    first, second = ask(*arguments).json(), ask(*arguments).json()
    assert first["meta"] == second["meta"]


def test_list_pages_through_everything(ask: Ask) -> None:
    mine = {f"listed-{n}" for n in range(5)}
    for action_id in mine:
        ask("add", action_id, "--in", "1d", "--log", "x")
    listed = [json.loads(line) for line in ask("list", "--all", "--json").out.splitlines()]
    assert mine <= {action["meta"]["id"] for action in listed}

    seen: list[str] = []
    token: list[str] = []
    while True:
        page = ask("list", "--limit", "2", *token)
        seen += [line.split()[0] for line in page.out.splitlines()[1:]]
        if not page.err:
            break
        assert page.err.startswith("There are more: --all, or --page-token ")
        token = ["--page-token", page.err.split()[-1]]
    assert seen == [action["meta"]["id"] for action in listed]


def test_a_file_of_actions(ask: Ask, tmp_path: Path) -> None:
    lines: list[Any] = [_line(f"filed-{n}") for n in range(3)]
    lines += ["", "{not JSON", json.dumps({"meta": {"id": "filed-0"}, "spec": {}}), '{"metta": {}}']
    (tmp_path / "actions.jsonl").write_text("\n".join(lines))

    added = ask("add", "--from-file", "actions.jsonl")
    assert added.code == 1
    assert added.out == "3 of 6 actions were added.\n"
    wrong = added.err.splitlines()
    assert wrong[0].startswith("clepsydra: actions.jsonl:5: not an action in JSON")
    assert wrong[1] == "clepsydra: actions.jsonl:6: spec.target: is required"
    assert wrong[2].startswith("clepsydra: actions.jsonl:7: not an action in JSON")

    (tmp_path / "again.jsonl").write_text("\n".join(_line(f"again-{n}") for n in range(3)))
    for _ in range(2):
        again = ask("add", "--from-file", "again.jsonl", "--request-id", "import-1")
        assert (again.code, again.out) == (0, "3 of 3 actions were added.\n")


def _line(action_id: str) -> str:
    return json.dumps(
        {"meta": {"id": action_id}, "spec": {"schedule": {"delay": "3600s"}, "log": {"message": "filed"}}}
    )


def test_a_command_for_more_than_one_action(ask: Ask) -> None:
    ask("add", "one", "--in", "1d", "--log", "x")
    ask("add", "two", "--in", "1d", "--log", "x")
    done = ask("pause", "one", "missing", "two")
    assert done.code == 3
    assert done.out == "one is paused\ntwo is paused\n"
    assert done.err == "clepsydra: there is no action 'missing'\n"
    assert ask("pause", "one", "two", "--etag", "x").code == 2


def test_a_refusal_names_every_wrong_field(ask: Ask) -> None:
    refused = ask("add", "wrong", "--log", "x", "--retry-jitter", "5", "--timeout", "9d")
    assert refused.code == 2
    first, *fields = refused.err.splitlines()
    assert first.startswith("clepsydra: action.spec.retry.jitter: must be a number from 0 to 1 (and 1 more)")
    assert [field.split(":")[0].strip() for field in fields] == [
        "action.spec.retry.jitter",
        "action.spec.attempt_timeout",
    ]
