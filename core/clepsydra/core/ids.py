"""The source of guids, generated ids, shards and jitter: one random generator, passed in.

A guid must never be current twice, so it has 128 random bits. Processes seed from the operating system; a simulation
seeds from a number and gets the same run again.
"""

import hashlib
import random
from functools import lru_cache

GUID_LENGTH = 32
_GUID_BITS = 4 * GUID_LENGTH
_ID_BITS = 64
# Ids that are drawn together share the other bits and count in these.
_ORDINAL_BITS = 24

_WORKER_LENGTH = GUID_LENGTH // 2
_LEASES = "0" * (GUID_LENGTH - _WORKER_LENGTH)

# How many actions of one call share a shard: enough to fill some pages of the store.
_SHARD_RUN = 64


class Ids:
    """
    >>> ids = Ids(random.Random(7))
    >>> len(ids.guid()) == GUID_LENGTH
    True
    """

    def __init__(self, randomness: random.Random) -> None:
        self._random = randomness

    @classmethod
    def from_system(cls) -> "Ids":
        # SystemRandom would make a system call for every number; one call for a seed of 256 bits is as unique.
        return cls(random.Random(random.SystemRandom().getrandbits(256)))

    def guid(self) -> str:
        return self._random.getrandbits(_GUID_BITS).to_bytes(_GUID_BITS // 8).hex()

    def action_id(self, now_us: int) -> str:
        """A generated id starts with the time, so that actions created together lie together in a B-tree."""
        return f"{now_us.to_bytes(7).hex()}-{self._random.getrandbits(_ID_BITS).to_bytes(_ID_BITS // 8).hex()}"

    def guids(self, count: int) -> list[str]:
        """The same guids that this many calls of `guid` would draw, at a fraction of their cost."""
        # One big draw yields the guids in reverse order.
        text = self._random.getrandbits(_GUID_BITS * count).to_bytes(_GUID_BITS * count // 8).hex()
        return [text[start : start + GUID_LENGTH] for start in range(GUID_LENGTH * (count - 1), -1, -GUID_LENGTH)]

    def action_ids(self, count: int, now_us: int) -> list[str]:
        """Generated ids in ascending order, so that a B-tree is appended to and its pages are filled.

        >>> Ids(random.Random(7)).action_ids(2, 1)
        ['00000000000001-f252e6b438000000', '00000000000001-f252e6b438000001']
        """
        drawn = self._random.getrandbits(_ID_BITS - _ORDINAL_BITS).to_bytes((_ID_BITS - _ORDINAL_BITS) // 8).hex()
        head = f"{now_us.to_bytes(7).hex()}-{drawn}"
        return [head + ordinal for ordinal in _ordinals(count)]

    def shard(self, shards: int) -> int:
        # The same as randrange, without its overhead.
        bits = shards.bit_length()
        while (shard_id := self._random.getrandbits(bits)) >= shards:
            pass
        return shard_id

    def shard_runs(self, shards: int, count: int) -> list[int]:
        """Shards for the actions of one call, in their order: runs of adjacent actions share a shard.

        Adjacent actions lie in the same pages of the store, and those of one shard are executed and finished together.
        Runs are short, so that one call is still spread over many shards and workers.

        >>> len(set(Ids(random.Random(7)).shard_runs(1000, 130)))
        3
        """
        return [shard for _ in range(0, count, _SHARD_RUN) for shard in [self.shard(shards)] * _SHARD_RUN][:count]

    def fraction(self) -> float:
        """A number from 0 up to 1, for jitter."""
        return self._random.random()


class WorkerGuids:
    """The guids under which one worker locks and writes. They share their first half, which tells them from others'.

    >>> guids = WorkerGuids(Ids(random.Random(7)))
    >>> is_same_worker(guids.sync(), guids.leases), is_same_worker(guids.sync(), WorkerGuids(Ids.from_system()).leases)
    (True, False)
    >>> is_extension(guids.leases), is_extension(guids.sync())
    (True, False)
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._worker = ids.guid()[:_WORKER_LENGTH]
        # The guid under which leases are extended: that moves the rows of attempts that run.
        self.leases = self._worker + _LEASES

    def sync(self) -> str:
        """One sync iteration, or any other writer than the keeper of leases."""
        return self._worker + self._ids.guid()[_WORKER_LENGTH:]


def is_same_worker(guid: str, other: str) -> bool:
    return guid[:_WORKER_LENGTH] == other[:_WORKER_LENGTH]


def is_extension(guid: str) -> bool:
    """Whether a row that was moved under this guid had its lease extended."""
    return guid.endswith(_LEASES)


def action_id_for_request(request_id: str) -> str:
    """The id of an action created without one but with a request id: a replay must find the same action."""
    return "r-" + hashlib.blake2b(request_id.encode(), digest_size=16).hexdigest()


@lru_cache(16)
def _ordinals(count: int) -> tuple[str, ...]:
    """Cached, because most batches have the same few sizes."""
    return tuple(n.to_bytes(_ORDINAL_BITS // 8).hex() for n in range(count))
