"""Where the reads of a shard start, so that they do not walk over deleted rows again and again.

A cursor never passes now minus an overlap that exceeds the longest retry of a call, because a row may become visible
that late; nor a row that was seen and still exists; and it falls back to any earlier time that this worker writes. At
each acquisition, and once a minute, reads start from the beginning.
"""

from clepsydra.core.limits import READ_OVERLAP_US
from clepsydra.core.times import MINUTE_US

_RESET_US = MINUTE_US


class ReadCursor:
    """The start of reads of one queue of one shard."""

    __slots__ = ("_reset_us", "from_us")

    def __init__(self, now_us: int) -> None:
        self.from_us = 0
        self._reset_us = now_us

    def drained(self, until_us: int, now_us: int) -> None:
        """This worker has seen no row before this time."""
        if now_us - self._reset_us >= _RESET_US:
            self._reset_us = now_us
            self.from_us = 0
        else:
            self.from_us = max(self.from_us, min(until_us, now_us - READ_OVERLAP_US))

    def wrote(self, at_us: int) -> None:
        """This worker writes a row at this time."""
        self.from_us = min(self.from_us, at_us)
