"""How many due rows of a shard to try at once.

Planning a row that cannot begin is wasted work. A backlog whose rows begin by the hundred needs no search for what else
could begin: the worker soon gets to all of its rows. So while what the last refused row lacked is given back and taken
again quickly, only as many overdue rows are tried as can probably begin, because the next rows probably need the same.
Some are tried now and then all the same. Rows that have just come due, and all rows of a backlog that does not flow,
are tried at once.
"""

from clepsydra.core.times import MILLISECOND_US, SECOND_US
from clepsydra.worker.capacity import Listener, Needs

# A backlog flows if attempts with these needs begin at this rate in the whole worker, measured over this time at least.
_FLOW_PER_S = 500
_MEASURED_US = 50 * MILLISECOND_US
# While it flows, its rows are tried this often, whether they can begin or not.
_TRY_US = SECOND_US
# A row that came due before this is overdue.
_JUST_DUE_US = SECOND_US


class Admission:
    """The admission of one shard."""

    def __init__(self) -> None:
        self._lacked: Needs | None = None
        self._is_flowing = False
        # Since when, and from which count, attempts with these needs are counted.
        self._counted_us = 0
        self._counted_from = 0
        self._next_try_us = 0

    def overdue_before_us(self, now_us: int) -> int:
        return now_us - _JUST_DUE_US

    def limit(self, now_us: int, limit: int) -> int:
        """How many overdue rows to try now, at most `limit`."""
        lacked = self._lacked
        if lacked is None or now_us >= self._next_try_us or not self._flows(lacked, now_us):
            return limit
        return min(limit, lacked.room())

    def refused(self, lacked: Needs, now_us: int) -> None:
        """A row could not begin because it lacked this."""
        if lacked is not self._lacked:
            self._lacked = lacked
            self._counted_us, self._counted_from = now_us, lacked.begun
        if now_us >= self._next_try_us:
            self._next_try_us = now_us + _TRY_US

    def pause_us(self, now_us: int, listener: Listener) -> int:
        """How long overdue rows wait for what they probably lack, unless it is given back before. 0: they do not."""
        lacked = self._lacked
        if lacked is None or now_us >= self._next_try_us or not self._flows(lacked, now_us) or lacked.room() > 0:
            return 0
        lacked.lacking().listeners.add(listener)
        return min(_MEASURED_US, self._next_try_us - now_us)

    def _flows(self, lacked: Needs, now_us: int) -> bool:
        counted_for_us = now_us - self._counted_us
        if counted_for_us >= _MEASURED_US:
            begun = lacked.begun - self._counted_from
            self._is_flowing = begun * SECOND_US >= _FLOW_PER_S * counted_for_us
            self._counted_us, self._counted_from = now_us, lacked.begun
        return self._is_flowing
