"""One server for all tests of a run, in all of its processes.

Each process that uses the server holds a shared lock on a file for as long as it lives. A process of its own, the
keeper, waits for the exclusive lock: when it has that, no test is left, and it stops the server. So the server is
stopped even if the tests are killed.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

from tests.postgres.server import running

GIVEN = "CLEPSYDRA_TEST_POSTGRES"

# Files that stay open, and locked, for as long as this process lives.
_held: list[IO[str]] = []


@cache
def server_url() -> str:
    """The server that the environment names, or the one of this run, which the first caller starts."""
    given = os.environ.get(GIVEN)
    if given:
        return given
    folder = _folder_of_run()
    _held.append(_locked(folder / "users", fcntl.LOCK_SH))
    with _locked(folder / "starting", fcntl.LOCK_EX):
        address = folder / "address"
        if not address.exists():
            address.write_text(_start_keeper(folder))
        return address.read_text()


def _folder_of_run() -> Path:
    """The same folder for all processes of a run: they share its id."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return Path(tempfile.mkdtemp(prefix="clepsydra-tests-"))
    folder = Path(tempfile.gettempdir()) / f"clepsydra-tests-{run}"
    folder.mkdir(exist_ok=True)
    return folder


def _start_keeper(folder: Path) -> str:
    keeper = subprocess.Popen(
        [sys.executable, "-m", __name__, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    assert keeper.stdout is not None
    address = keeper.stdout.readline().strip()
    assert address, f"the server did not start; the keeper ended with {keeper.wait()}"
    # Nobody waits for the end of the keeper, which outlives this process.
    keeper.stdout.close()
    keeper.returncode = 0
    return address


def _keep(folder: Path) -> None:
    with running() as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        _locked(folder / "users", fcntl.LOCK_EX).close()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _locked(path: Path, how: int) -> IO[str]:
    file = path.open("w")
    fcntl.flock(file, how)
    return file


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
