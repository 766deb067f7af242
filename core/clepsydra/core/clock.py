"""The only file that reads a clock.

Every process follows its store's clock. `DisciplinedClock` takes over the store's time when an answer arrives; the true
time is never earlier than that, so a slow network makes things late, never early. Between two answers the machine's
monotonic clock carries the time on, whatever happens to its wall clock. A slow answer, such as one that waited for a
commit, does not set the clock back: a better estimate from a quicker answer is kept for as long as it can be true.
"""

import time
from typing import Protocol

from clepsydra.core.times import SECOND_US

# How far two clocks may drift apart: an estimate of the store's time loses this much with every second.
_DRIFT_PPM = 500


class Clock(Protocol):
    """What time it is, and how much time has passed."""

    def now_us(self) -> int:
        """UTC microseconds."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds since an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000


class DisciplinedClock:
    """The store's time, carried on by the machine's monotonic clock.

    >>> class Stopped:
    ...     def now_us(self): return 0
    ...     def monotonic_us(self): return 10
    >>> clock = DisciplinedClock(Stopped())
    >>> clock.anchor(1_000)
    >>> clock.now_us()
    1000
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._offset_us = machine.now_us() - machine.monotonic_us()
        # When the store last answered.
        self._anchored_us: int | None = None

    def anchor(self, store_now_us: int, asked_us: int | None = None) -> None:
        """Take over the store's time; to be called when its answer arrives.

        `asked_us`, the monotonic time of the question, bounds how far ahead the store's clock can be. An earlier
        estimate is kept if it is better and does not exceed that bound.
        """
        arrived_us = self._machine.monotonic_us()
        offset_us = store_now_us - arrived_us
        if asked_us is not None and self._anchored_us is not None:
            kept_us = self._offset_us - (arrived_us - self._anchored_us) * _DRIFT_PPM // SECOND_US
            if offset_us < kept_us <= store_now_us - asked_us:
                offset_us = kept_us
        self._offset_us, self._anchored_us = offset_us, arrived_us

    def now_us(self) -> int:
        return self._machine.monotonic_us() + self._offset_us

    def monotonic_us(self) -> int:
        return self._machine.monotonic_us()
