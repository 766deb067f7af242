"""SQLite's errors as the port's few, with what to do about them."""

import apsw

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable


class Busy(Unavailable):
    """Another process has held the write lock for as long as one try waits for it."""


_UNAVAILABLE: dict[type[apsw.Error], str] = {
    apsw.LockedError: "is locked; try again",
    apsw.FullError: "cannot grow: the disk is full; free some space and try again",
    apsw.NoMemError: "cannot be used: this process has no memory left",
    apsw.InterruptError: "was interrupted; try again",
}

_UNUSABLE: dict[type[apsw.Error], str] = {
    apsw.NotADBError: "is not a SQLite database; name another file",
    apsw.CorruptError: "is corrupt; restore it from a backup",
    apsw.ReadOnlyError: "is read-only; check the permissions of the file and of its folder",
    apsw.CantOpenError: "cannot be opened; check that its folder exists and may be written to",
    apsw.PermissionsError: "may not be accessed; check its permissions",
    apsw.AuthError: "may not be accessed; check its permissions",
    apsw.FormatError: "has a format that this version of SQLite does not know",
}


def translate(error: apsw.Error, path: str) -> StoreError:
    """What an error means if nothing can have been committed."""
    if isinstance(error, apsw.BusyError):
        return Busy(f"the store {path} is busy: another process has held its write lock for too long; try again")
    for known, sentence in _UNAVAILABLE.items():
        if isinstance(error, known):
            return Unavailable(f"the store {path} {sentence}")
    for known, sentence in _UNUSABLE.items():
        if isinstance(error, known):
            return Unusable(f"the store {path} {sentence}")
    if isinstance(error, apsw.IOError):
        return Unavailable(f"the store {path} could not be read or written: {error}; check the disk")
    return Unusable(f"the store {path} failed: {type(error).__name__}: {error}")


def translate_commit(error: apsw.Error, path: str) -> StoreError:
    """What an error of COMMIT means: after a failed sync, it is unknown what reached the disk."""
    if isinstance(error, apsw.IOError):
        return OutcomeUnknown(f"the store {path} could not be synced to its disk: {error}; check the disk")
    return translate(error, path)
