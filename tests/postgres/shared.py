"""One server for all tests of a run, in however many processes they run.

Each process that wants the server holds a shared lock on a file for as long as it lives. The server has a keeper, a
process of its own, which waits to have that lock for itself alone; then nobody is left, and it takes the server down.
So the server goes away even if the tests are killed.
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

# Open for as long as this process lives.
_held: list[IO[str]] = []


@cache
def server_url() -> str:
    """A server that was given, or the one of this run, which the first to ask starts."""
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
    """The processes of one run have its id in common."""
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
    # Nobody waits for the keeper: it outlives this process.
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
