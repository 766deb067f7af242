"""A disk whose syncs fail when told to: a VFS of SQLite over the ordinary one."""

import os

import apsw


class _File(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], disk: "FailingDisk") -> None:
        super().__init__("unix", name, flags)
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._disk.fails():
            error = apsw.IOError("fsync: Input/output error")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC  # type: ignore[attr-defined]
            raise error
        super().xSync(flags)


class FailingDisk(apsw.VFS):
    """The default for connections that are opened while this exists. Syncs fail while the file `flag` exists."""

    def __init__(self, flag: str | os.PathLike[str]) -> None:
        super().__init__("clepsydra-failing-disk", "unix", makedefault=True)
        self._flag = flag

    def fail(self) -> None:
        with open(self._flag, "x"):
            pass

    def recover(self) -> None:
        os.unlink(self._flag)

    def fails(self) -> bool:
        return os.path.exists(self._flag)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(name, flags, self)
