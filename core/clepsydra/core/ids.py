"""Where guids, generated ids, shards and jitter come from: one source of randomness, passed in.

A guid must never be current twice, so it has 128 random bits. Processes seed from the operating system; a simulation
seeds from a number and gets the same run again.
"""

import hashlib
import random
from functools import lru_cache

GUID_LENGTH = 32
_GUID_BITS = 4 * GUID_LENGTH
_ID_BITS = 64
# Of ids that are drawn together, so many of these bits count.
_ORDINAL_BITS = 24

# So many neighbours share a shard: some pages full.
_RUN = 64


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
        """What so many calls of `guid` would draw, at a fraction of their cost."""
        # Of numbers that are drawn as one, the first is the last in its digits.
        text = self._random.getrandbits(_GUID_BITS * count).to_bytes(_GUID_BITS * count // 8).hex()
        return [text[start : start + GUID_LENGTH] for start in range(GUID_LENGTH * (count - 1), -1, -GUID_LENGTH)]

    def action_ids(self, count: int, now_us: int) -> list[str]:
        """Generated ids for many, in ascending order: then a B-tree is appended to, and its pages are filled.

        >>> Ids(random.Random(7)).action_ids(2, 1)
        ['00000000000001-f252e6b438000000', '00000000000001-f252e6b438000001']
        """
        drawn = self._random.getrandbits(_ID_BITS - _ORDINAL_BITS).to_bytes((_ID_BITS - _ORDINAL_BITS) // 8).hex()
        head = f"{now_us.to_bytes(7).hex()}-{drawn}"
        return [head + ordinal for ordinal in _ordinals(count)]

    def shard(self, shards: int) -> int:
        # What randrange does, without the calls that it takes to get there.
        bits = shards.bit_length()
        while (shard_id := self._random.getrandbits(bits)) >= shards:
            pass
        return shard_id

    def shards_of_many(self, shards: int, count: int) -> list[int]:
        """Shards for actions that are changed by one call, in their order: neighbours share one.

        They lie in the same pages of the store, and are executed and finished together if they are in one shard. Runs
        are short, so that what a call brings is spread over many shards, and so over many workers, all the same.

        >>> len(set(Ids(random.Random(7)).shards_of_many(1000, 130)))
        3
        """
        return [shard for _ in range(0, count, _RUN) for shard in [self.shard(shards)] * _RUN][:count]

    def fraction(self) -> float:
        """A number from 0 up to 1, for jitter."""
        return self._random.random()


def action_id_for_request(request_id: str) -> str:
    """The id of an action created without one but with a request id: a replay must find the same action."""
    return "r-" + hashlib.blake2b(request_id.encode(), digest_size=16).hexdigest()


@lru_cache(16)
def _ordinals(count: int) -> tuple[str, ...]:
    """Batches are usually of the same few sizes."""
    return tuple(n.to_bytes(_ORDINAL_BITS // 8).hex() for n in range(count))
