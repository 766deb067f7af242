"""The example client in Node: with the .proto files alone, it creates, lists and deletes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartUp

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "node"


def not_run(reason: str) -> None:
    """Where the tests decide over a change, a test that cannot run is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """The example in a folder that has nothing else but the .proto files, where the example expects them."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        not_run("node and npm are not installed")
    folder = tmp_path / "examples" / "node"
    folder.mkdir(parents=True)
    for name in ("client.js", "package.json", "package-lock.json"):
        shutil.copy(EXAMPLE / name, folder)
    for proto in (ROOT / "proto").rglob("*.proto"):
        copied = tmp_path / proto.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(proto, copied)
    arguments = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    installed = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    if installed.returncode:
        not_run(f"the packages of the example could not be installed: {installed.stderr[-500:]}")
    return folder / "client.js"


def test_the_node_client_creates_lists_and_deletes(client: Path, start_up: StartUp) -> None:
    up = start_up()

    done = subprocess.run(["node", str(client), up.address], capture_output=True, text=True, check=False, timeout=60)

    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "created from-node: SCHEDULED",
            "listed from-node",
            "refused INVALID_ARGUMENT: requests[0].action.spec.retry.jitter",
            "deleted from-node",
            "then NOT_FOUND: there is no action 'from-node'",
        ],
        "",
    )
    shown = (EXAMPLE / "README.md").read_text()
    assert done.stdout in shown, "examples/node/README.md shows what the example prints"


def test_the_lock_file_names_no_registry() -> None:
    """The packages come from whichever registry npm is configured for."""
    assert '"resolved"' not in (EXAMPLE / "package-lock.json").read_text()
