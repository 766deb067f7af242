"""The tests also pass where the parent ignores SIGINT: under `nohup`, or in a background job of a shell."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_INTERRUPTING_TEST = "tests/end_to_end/test_inspecting.py::test_watching_locks"


def test_a_session_that_inherits_an_ignored_sigint_can_interrupt_its_children() -> None:
    session = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", _INTERRUPTING_TEST]
    done = subprocess.run(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *session], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
