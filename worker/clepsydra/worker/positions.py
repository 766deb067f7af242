"""Where the reads of a shard start, so that they do not walk over deleted rows again and again.

A start never passes now minus an overlap that exceeds the longest retry of a call, because a row may become visible
that late; nor a row that was seen and is not yet gone; and it falls back to any earlier time that this worker writes.
At each acquisition, and once a minute, the reads start from the beginning.
"""

from clepsydra.core.limits import READ_OVERLAP_US
from clepsydra.core.moments import MINUTE_US

_FROM_THE_BEGINNING_US = MINUTE_US


class Position:
    """The start of reads of one queue of one shard."""

    __slots__ = ("_began_us", "from_us")

    def __init__(self, now_us: int) -> None:
        self.from_us = 0
        self._began_us = now_us

    def drained(self, until_us: int, now_us: int) -> None:
        """No row is left before this time, for all that this worker has seen."""
        if now_us - self._began_us >= _FROM_THE_BEGINNING_US:
            self._began_us = now_us
            self.from_us = 0
        else:
            self.from_us = max(self.from_us, min(until_us, now_us - READ_OVERLAP_US))

    def wrote(self, at_us: int) -> None:
        """This worker puts a row at this time."""
        self.from_us = min(self.from_us, at_us)
