"""Where guids, generated ids, shards and jitter come from: one source of randomness, passed in.

A guid must never be current twice, so it has 128 random bits. Processes seed from the operating system; a simulation
seeds from a number and gets the same run again.
"""

import hashlib
import random

GUID_LENGTH = 32
_GUID_BITS = 4 * GUID_LENGTH
_ID_BITS = 64

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
        """As many as so many calls of `guid` would draw."""
        return self._texts(_GUID_BITS, count)

    def guids_and_action_ids(self, count: int, now_us: int) -> list[tuple[str, str]]:
        """What calls of `guid` and of `action_id` would draw in turns, for many and at a fraction of their cost.

        >>> one_by_one, at_once = Ids(random.Random(7)), Ids(random.Random(7))
        >>> at_once.guids_and_action_ids(2, 1) == [(one_by_one.guid(), one_by_one.action_id(1)) for _ in range(2)]
        True
        """
        head, id_length = f"{now_us.to_bytes(7).hex()}-", _ID_BITS // 4
        return [(text[id_length:], head + text[:id_length]) for text in self._texts(_GUID_BITS + _ID_BITS, count)]

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

    def _texts(self, bits: int, count: int) -> list[str]:
        """Random numbers in hexadecimal. Of numbers that are drawn as one, the first is the last in its digits."""
        length = bits // 4
        text = self._random.getrandbits(bits * count).to_bytes(bits * count // 8).hex()
        return [text[start : start + length] for start in range(length * (count - 1), -1, -length)]

    def fraction(self) -> float:
        """A number from 0 up to 1, for jitter."""
        return self._random.random()


def action_id_for_request(request_id: str) -> str:
    """The id of an action created without one but with a request id: a replay must find the same action."""
    return "r-" + hashlib.blake2b(request_id.encode(), digest_size=16).hexdigest()
