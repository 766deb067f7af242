"""What must not be shown is not shown: secrets are planted everywhere, and all output is searched for them."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.processes import address_in, eventually

SECRET = "s3cr3t"

# Nothing listens on port 1. The last ones are written wrongly, as people write them.
URLS = [
    f"postgresql://ada:{SECRET}@127.0.0.1:1/x",
    f"postgresql://127.0.0.1:1/x?user=ada&password={SECRET}",
    f"postgresql://127.0.0.1:1/x?user=ada&sslpassword={SECRET}&sslmode=disable",
    f"postgresql://127.0.0.1:1/x?pass%77ord={SECRET}",
    f"postgresql://ada:{SECRET}@127.0.0.1:1/x?nonsense=1",
    f"postgresql://ada:a/{SECRET}@127.0.0.1:1/x",
    f"postgresql://ada:a?{SECRET}@127.0.0.1:1/x",
    f"postgresql://ada:a#{SECRET}@127.0.0.1:1/x",
    f"postgresql://ada:a@{SECRET}@127.0.0.1:1/x",
    f"postgresql://ada:{SECRET}",
    f"postgresql:ada:{SECRET}@db/x",
    f"postgresql://127.0.0.1:1/x?password:{SECRET}",
    f"postgresql://127.0.0.1:1/x?password=a&{SECRET}",
    f"postgresql://127.0.0.1:1/x?pool_size=1;password={SECRET}",
    f"ada:{SECRET}@db/x",
    f"host=db password={SECRET}",
    f"host=db password='a {SECRET}'",
    f"sqlite://ada:{SECRET}@db/x",
    f"sqlite:///a.db?password={SECRET}",
    f"ydb://ada:{SECRET}@127.0.0.1:1",
    f"ydb://ada:a/{SECRET}@127.0.0.1:1/local",
    f"ydb://127.0.0.1:1/local?token={SECRET}",
    f"ydb://127.0.0.1:x/local?password={SECRET}",
    f"redis://ada:{SECRET}@h",
    f" postgresql://ada:{SECRET}@h",
    f"POSTGRESQL://ada:{SECRET}@h",
]


COMMANDS = ["config", "init", "stats", "locks", "audit", "scheduler", "worker", "up"]


@pytest.mark.parametrize("url", URLS)
def test_no_command_shows_the_password_of_a_store(url: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [command(name, "--store", url) for name in COMMANDS]
    monkeypatch.setenv("CLEPSYDRA_STORE", url)
    shown += [command("config"), command("stats")]

    assert [result.code for result in shown].count(0) == 2, "only config succeeds"
    assert SECRET not in "".join(result.out + result.err for result in shown)


def test_a_store_of_a_wrong_type_is_not_shown_either(command: Command, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'store = ["postgresql://ada:{SECRET}@db/x", "password={SECRET}"]')
    result = command("config", "--config", "c.toml")

    assert result.code == 2
    assert "c.toml: store" in result.err
    assert SECRET not in result.err


def test_what_is_not_secret_is_shown(command: Command) -> None:
    result = command("config", "--store", f"postgresql://db/x?password={SECRET}&sslkey=client.key&schema=timers")

    assert 'store = "postgresql://db/x?password=***&sslkey=client.key&schema=timers"' in result.out


# Escape sequences, characters that turn the direction of text, and line breaks of all kinds.
NASTY = "\x1b[2J\x9b31m\u202ereversed\u2028next\x85line\r\n2026-01-01 [info] forged\x7f"

_HANDLERS = f"""
import logging

from clepsydra.worker import handler


@handler("fails")
async def fails(payload: bytes) -> None:
    password = "{SECRET}" + payload.decode()
    raise ValueError({NASTY!r}) from KeyError({NASTY!r})


@handler("fails-in-a-thread")
def fails_in_a_thread(payload: bytes) -> None:
    password = "{SECRET}" + payload.decode()
    try:
        logging.getLogger("app").warning({NASTY!r})
        int(password)
    except ValueError:
        logging.getLogger("app").exception("caught: %s", {NASTY!r}, exc_info=KeyError({NASTY!r}))
        raise RuntimeError({NASTY!r}) from None
"""


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_logs_show_no_values_and_obey_nobody(log_format: str, start: Start, command: Command, tmp_path: Path) -> None:
    (tmp_path / "nasty.py").write_text(_HANDLERS)
    up = start("up", "--listen", "127.0.0.1:0", "--handlers", "nasty", "--log-format", log_format)
    address = address_in(up.wait_for_out("listens on"))
    for name in ("fails", "fails-in-a-thread"):
        payload = f"{SECRET}-payload"
        added = command(
            "add", name, "--handler", name, "--payload", payload, "--max-attempts", "1", "--server", address
        )
        assert added.code == 0
    eventually(lambda: command("list", "--server", address).out, lambda out: out.count("FAILED") == 2)
    assert up.stop() == 0
    logged = "\n".join(up.err)

    assert "reversed" in logged
    assert SECRET not in logged
    assert all(line.isprintable() for line in up.err)
    if log_format == "text":
        assert not [line for line in up.err if line.startswith("2026-01-01")]
        assert "Traceback" in logged
    else:
        assert all(json.loads(line) for line in up.err)


def test_what_commands_print_obeys_nobody(start_up: StartUp, command: Command, tmp_path: Path) -> None:
    (tmp_path / "nasty.py").write_text(_HANDLERS)
    up = start_up("--handlers", "nasty", "--name", "w\x9b\u202e")
    server = ("--server", up.address)
    nasty_value = "\x9b31m\u202ereversed\u2028"
    for flags in (("--log", NASTY), ("--handler", "fails", "--max-attempts", "1")):
        assert command("add", flags[1][:5].strip("\x1b[2J\x9b") or "a", *flags, *server).code == 0
    assert command("add", "labelled", "--in", "1h", "--log", "x", "--label", f"a={nasty_value}", *server).code == 0
    eventually(lambda: command("get", "fails", *server).out, lambda out: "FAILED" in out)
    ids = [json.loads(line)["meta"]["id"] for line in command("list", "--json", *server).out.splitlines()]
    results = [command("list", *server), command("list", "--json", *server), command("locks", "--store", up.store)]
    results += [command("locks", "--json", "--store", up.store), command("audit", "--json", "--store", up.store)]
    for action_id in ids:
        results += [command("get", action_id, *server), command("get", action_id, "--json", *server)]
    results += [command("get", NASTY, *server), command("add", "a\x9b", "--log", "x", *server)]
    results += [command("rm", "x\x9b", "y\u202e", *server), command("get", "--server", NASTY, "x")]
    (tmp_path / "file").write_bytes(
        b'{"meta": {"id": "\xc2\x9b"}, "spec": {"log": {"message": "x"}}}\n{"\xe2\x80\xae": 1}\n'
    )
    results += [command("add", "--file", "file", *server), command(NASTY), command("config", "--set", f"{NASTY}=1")]
    results += [
        command("config", "--set", f"worker.name={nasty_value}"),
        command("stats", "--store", f"sqlite:///{NASTY}"),
    ]
    for result in results:
        lines = (result.out + result.err).split("\n")
        assert [line for line in lines if not line.isprintable()] == []

    named = command("config", "--set", "worker.name=a\x9b\U000e0001").out
    (tmp_path / "again.toml").write_text(named)
    assert tomllib.loads(named)["worker"]["name"] == "a\x9b\U000e0001"
