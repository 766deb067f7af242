"""Looking for connections among the descriptors of the process leaves everything else of the process alone."""

import fcntl
import subprocess
import sys
from pathlib import Path

from clepsydra.scheduler.api.connections import Connections, Peer

_TRY_TO_LOCK = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_the_locks_of_this_process_on_its_files_are_kept(tmp_path: Path) -> None:
    """SQLite has such locks on its files: without them another process would delete its write-ahead log."""
    path = tmp_path / "file"
    with path.open("w+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Connections(1).received_bytes(Peer("127.0.0.1", 1))
        other = subprocess.run([sys.executable, "-c", _TRY_TO_LOCK, str(path)], capture_output=True, check=False)
    assert b"BlockingIOError" in other.stderr
