"""What a newcomer waits for: `make up` on a fresh clone in an empty environment, until a first action has fired.

    python -m benchmarks.first_action [--revision HEAD]

Prints the seconds until `make up` listens and until the first action has fired, and the megabytes that were installed.
The clone, its .venv and pip's cache lie in a temporary folder, so nothing is reused.
"""

import argparse
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.installation import free_port, wait_until

_PROJECT = Path(__file__).parent.parent
_LINE = "the first action has fired"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--revision", default="HEAD", help="any name that git knows; uncommitted changes do not count")
    revision = parser.parse_args().revision
    with tempfile.TemporaryDirectory(prefix="clepsydra-first-action-") as folder:
        clone = Path(folder) / "clepsydra"
        subprocess.run(["git", "clone", "--quiet", "--no-local", _PROJECT, clone], check=True)
        # A revision may lie on another branch than the one that a clone checks out.
        commit = subprocess.run(
            ["git", "rev-parse", revision], cwd=_PROJECT, check=True, capture_output=True, text=True
        )
        subprocess.run(["git", "checkout", "--quiet", "--detach", commit.stdout.strip()], cwd=clone, check=True)
        _measure(clone, Path(folder))


def _measure(clone: Path, folder: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    environment = _empty_environment(folder, address)
    log = folder / "up.log"
    started = time.perf_counter()
    with log.open("wb") as output:
        up = subprocess.Popen(
            ["make", "up"], cwd=clone, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        command = clone / ".venv/bin/clepsydra"
        wait_until(lambda: up.poll() is not None or b"listens on" in log.read_bytes())
        if up.poll() is not None:
            raise SystemExit(f"make up ended:\n{log.read_text()}")
        listens_s = time.perf_counter() - started
        add = [str(command), "add", "hello", "--log", _LINE, "--server", address]
        subprocess.run(add, env=environment, check=True, capture_output=True)
        wait_until(lambda: log.read_text(errors="replace").count(_LINE) > 0)
        print(f"make up listens after      {listens_s:6.1f} s")
        print(f"the first action fired at  {time.perf_counter() - started:6.1f} s")
        print(f".venv takes                {_megabytes(clone / '.venv'):6.0f} MB")
        print(f"make up printed            {len(log.read_bytes().splitlines()):6} lines")
    finally:
        os.killpg(up.pid, signal.SIGINT)
        up.wait(timeout=60)


def _empty_environment(folder: Path, address: str) -> dict[str, str]:
    """No cache, no home, no active virtual environment; only where packages come from stays as this machine has it."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "http", "HTTP"))}
    return {
        **kept,
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PIP_CACHE_DIR": str(folder / "pip-cache"),
        "CLEPSYDRA_SCHEDULER_LISTEN": address,
    }


def _megabytes(folder: Path) -> float:
    """As `du` counts: the blocks on the disk."""
    files = (path.lstat() for path in folder.rglob("*"))
    return sum(file.st_blocks * 512 for file in files) / 1e6


if __name__ == "__main__":
    main()
