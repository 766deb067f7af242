"""A disk that can be full.

Where a file system may be mounted, it is a small one in memory that is shrunk to what it holds: whoever writes is told
ENOSPC, as on a full disk. Elsewhere the processes may write to the beginnings of files only, whether these grow or not:
they are told EFBIG, another error with the same meaning for a store.
"""

import os
import resource
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

_SIZE_KIB = 2 * 1024 * 1024
# So that it fills in the middle of a transaction, and not before the first one.
_ROOM_KIB = 128


class Disk(Protocol):
    """A folder whose files cannot grow while it is full."""

    how: str
    folder: Path

    def fill(self, pids: Iterable[int]) -> None: ...

    def empty(self, pids: Iterable[int]) -> None: ...

    def close(self) -> None: ...


def make_disk(folder: Path) -> Disk:
    """A disk at this folder, which is made; the best kind that this machine allows."""
    return mounted_disk(folder) or limited_disk(folder)


def mounted_disk(folder: Path) -> "MountedDisk | None":
    """None where nothing may be mounted, and the folder is an ordinary one."""
    folder.mkdir()
    size = f"size={_SIZE_KIB}k"
    if os.geteuid() == 0 and _mount("-t", "tmpfs", "-o", size, "tmpfs", os.fspath(folder)):
        return MountedDisk(folder)
    return None


def limited_disk(folder: Path) -> "LimitedDisk":
    folder.mkdir(exist_ok=True)
    return LimitedDisk(folder)


class MountedDisk:
    how = "a file system in memory, ENOSPC"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, pids: Iterable[int]) -> None:
        del pids
        room_kib = _ROOM_KIB
        # It may have grown since it was measured, and a size below what is used is refused.
        while not self._resize(self._used_kib() + room_kib):
            room_kib *= 2

    def empty(self, pids: Iterable[int]) -> None:
        del pids
        assert self._resize(_SIZE_KIB), f"{self.folder} could not be given its size again"

    def close(self) -> None:
        # Lazily: a reader that is still closing its files must not keep the mount for ever.
        subprocess.run(["umount", "--lazy", self.folder], check=True)

    def _used_kib(self) -> int:
        usage = os.statvfs(self.folder)
        return (usage.f_blocks - usage.f_bfree) * usage.f_frsize // 1024

    def _resize(self, size_kib: int) -> bool:
        return _mount("-o", f"remount,size={size_kib}k", os.fspath(self.folder))


class LimitedDisk:
    how = "a limit on the size of files, EFBIG"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, pids: Iterable[int]) -> None:
        self._limit(pids, _ROOM_KIB * 1024)

    def empty(self, pids: Iterable[int]) -> None:
        self._limit(pids, resource.RLIM_INFINITY)

    def close(self) -> None:
        """The folder is removed by whoever made the one around it."""

    @staticmethod
    def _limit(pids: Iterable[int], size: int) -> None:
        for pid in pids:
            try:
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
            except ProcessLookupError:
                # Killed meanwhile: whoever comes after it has no limit.
                continue


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
