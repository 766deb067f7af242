"""The code of a git revision, laid out in a folder so that its commands can be run beside those of another."""

import os
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

_PROJECT = Path(__file__).parent.parent
_ROOTS = ("core", "proto", "schema", "store", "scheduler", "worker", "tools")

# The working tree as it is, instead of a revision.
WORKING_TREE = "."


class Revision:
    """A revision by any name that git knows, or `.` for the working tree."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._code = _PROJECT if name == WORKING_TREE else _unpacked(name, folder)

    def python_path(self) -> str:
        """What makes Python import this revision; the benchmarks themselves are always those of the working tree."""
        roots = [self._code / root for root in _ROOTS]
        return os.pathsep.join(str(path) for path in (*roots, _PROJECT))


def _unpacked(name: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", name], cwd=_PROJECT, check=True, capture_output=True).stdout
    code = folder / name.replace("/", "-")
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(code, filter="data")
    return code
