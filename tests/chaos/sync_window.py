"""Shows that a kernel can answer a sync with success that it did not do, without Clepsydra and without SQLite.

python -m tests.chaos.sync_window --runs 60

Needs Linux, root, a loop device and the programs of ext4 (mkfs.ext4, e2fsck). Each run makes a small ext4 file system
in an image, mounted with errors=remount-ro. A process writes numbered records to a file there, each with pwrite and
fdatasync, and acknowledges a record after its sync has succeeded. Then the file system is told to find an error
(trigger_fs_error), which turns it read-only in the midst of this. It is unmounted, checked, mounted again, and the
records are counted: every acknowledged record should be there.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

_IMAGE_BYTES = 64 * 1024 * 1024
_RECORD_BYTES = 4096

_WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
number = 0
while True:
    record = number.to_bytes(8, "big") * (4096 // 8)
    try:
        os.pwrite(file, record, number * 4096)
        os.fdatasync(file)
    except OSError as error:
        sys.stderr.write(os.strerror(error.errno))
        break
    os.write(1, number.to_bytes(8, "big"))
    number += 1
"""


class Run(NamedTuple):
    acknowledged: int
    found: int
    error: str

    @property
    def lost(self) -> int:
        return max(self.acknowledged - self.found, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("this program mounts file systems: run it as root")
    chance = random.Random(arguments.seed)
    runs = []
    for number in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            run = _run(Path(folder), 0.05 + 0.25 * chance.random())
        runs.append(run)
        _say(f"run {number}: {run.acknowledged} acknowledged, {run.lost} of them lost, then {run.error}")
    losing = sum(run.lost > 0 for run in runs)
    _say(
        f"{sum(run.acknowledged for run in runs)} acknowledged, {sum(run.lost for run in runs)} lost, "
        f"in {losing} of {len(runs)} runs, on {os.uname().sysname} {os.uname().release}"
    )
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run(folder: Path, after_s: float) -> Run:
    image, mounted = folder / "image", folder / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    _do("mkfs.ext4", "-q", "-F", str(image))
    device = _do("losetup", "--find", "--show", str(image)).strip()
    try:
        _do("mount", "-o", "errors=remount-ro", device, str(mounted))
        try:
            acknowledged, error = _write_until_an_error(mounted / "records", Path(device).name, after_s)
        finally:
            _do("umount", str(mounted))
        # It exits with 1 when it has repaired something.
        subprocess.run(["e2fsck", "-fy", device], capture_output=True, check=False)
        _do("mount", device, str(mounted))
        try:
            found = _count_records(mounted / "records")
        finally:
            _do("umount", str(mounted))
    finally:
        _do("losetup", "--detach", device)
    return Run(acknowledged, found, error)


def _write_until_an_error(records: Path, device: str, after_s: float) -> tuple[int, str]:
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(records)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.read(8)
    time.sleep(after_s)
    Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("the disk is said to have failed\n")
    out, error = writer.communicate(timeout=60)
    return 1 + len(out) // 8, error.decode()


def _count_records(records: Path) -> int:
    """How many there are, from the first to the last without a gap."""
    content = records.read_bytes() if records.exists() else b""
    number = 0
    while content[number * _RECORD_BYTES :][:_RECORD_BYTES] == number.to_bytes(8, "big") * (_RECORD_BYTES // 8):
        number += 1
    return number


def _do(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
