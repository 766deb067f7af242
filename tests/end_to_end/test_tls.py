"""A scheduler with TLS, and commands that trust it or do not."""

from pathlib import Path

from tests.end_to_end.conftest import Command, StartUp

_PEM = Path(__file__).with_name("tls.pem")
_SERVER = {"CLEPSYDRA_SCHEDULER_TLS_CERT_FILE": str(_PEM), "CLEPSYDRA_SCHEDULER_TLS_KEY_FILE": str(_PEM)}


def test_a_scheduler_with_tls(start_up: StartUp, command: Command) -> None:
    server = ["--server", start_up(**_SERVER).address]
    trusting = ["--set", "server_tls=true", "--set", f"server_ca_file={_PEM}"]
    assert command("add", "safe", "--in", "1d", "--log", "x", *server, *trusting).code == 0
    assert command("get", "safe", *server, *trusting).code == 0

    for distrusting in ([], ["--set", "server_tls=true"]):
        refused = command("get", "safe", *server, *distrusting)
        assert refused.code == 5
        assert refused.err.startswith(f"clepsydra: no scheduler answers at {server[1]}: ")


def test_files_that_cannot_be_read(command: Command, tmp_path: Path) -> None:
    missing = command("get", "x", "--set", "server_tls=true", "--set", "server_ca_file=missing.pem")
    assert (missing.code, missing.err) == (
        2,
        "clepsydra: server_ca_file (missing.pem) cannot be read: No such file or directory\n",
    )
    command("init")
    pair = ["--set", "scheduler.tls_cert_file=missing.pem", "--set", "scheduler.tls_key_file=missing.pem"]
    server = command("scheduler", "--listen", "127.0.0.1:0", *pair)
    assert server.code == 5
    assert "missing.pem" in server.err
