"""The limits of a YDB server that a client meets, and what its user may do. Sizes are the documented ones."""

from dataclasses import dataclass

_MIB = 2**20
_MINUTE_US = 60_000_000


@dataclass
class ServerLimits:
    parameter_bytes: int = 50 * _MIB
    key_bytes: int = _MIB
    value_bytes: int = 8 * _MIB
    # What one text may hold between its phases: rows that it has read, and will write.
    intermediate_bytes: int = 48 * _MIB
    sessions: int = 1000
    session_idle_us: int = 5 * _MINUTE_US
    transaction_idle_us: int = 5 * _MINUTE_US
    snapshot_life_us: int = 5 * _MINUTE_US
    # How long the server works on one table. Until then it is listed, and cannot be used.
    creation_s: float = 0.001


@dataclass
class Rights:
    """What the user may do. Above `path` nothing: a directory there cannot be listed, and none can be made in it."""

    path: str
    may_write: bool = True

    def hold_for(self, path: str) -> bool:
        return path == self.path or path.startswith(f"{self.path}/")


def size_of(value: object) -> int:
    return len(value) if isinstance(value, bytes | str) else 8
