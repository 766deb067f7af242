"""Where guids, generated ids, shards and jitter come from: one source of randomness, passed in.

A guid must never be current twice, so it has 128 random bits. Processes seed from the operating system; a simulation
seeds from a number and gets the same run again.
"""

import hashlib
import random

GUID_LENGTH = 32

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
        return self._random.getrandbits(128).to_bytes(16).hex()

    def action_id(self, now_us: int) -> str:
        """A generated id starts with the time, so that actions created together lie together in a B-tree."""
        return f"{now_us.to_bytes(7).hex()}-{self._random.getrandbits(64).to_bytes(8).hex()}"

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
