"""Try what is installed: `python -m tests.try_wheel` with the Python of a venv that has the wheel and nothing of tests.

A scheduler and a worker start, an action fires, both stop, and the audit is clean.
"""

import sys
import tempfile
from pathlib import Path

import clepsydra.tools
from tests.end_to_end.processes import Up
from tests.end_to_end.processes import clepsydra as command


def main() -> None:
    installed = Path(next(iter(clepsydra.tools.__path__)))
    if Path(__file__).parents[1] in installed.parents and "site-packages" not in installed.parts:
        raise SystemExit(f"this is not an installed wheel: {installed}")
    with tempfile.TemporaryDirectory(prefix="clepsydra-wheel-") as name:
        folder = Path(name)
        up = Up(folder)
        try:
            up.wait_until_ready()
            added = command("add", "hello", "--in", "100ms", "--log", "hello", "--server", up.address, folder=folder)
            assert added.code == 0, added.err
            up.wait_for_event("hello", action_id="hello")
            assert up.stop() == 0
        finally:
            up.kill()
        audit = command("audit", folder=folder)
        assert audit.code == 0, audit.err
    sys.stdout.write(f"the wheel works: {installed}\n{audit.out}")


if __name__ == "__main__":
    main()
