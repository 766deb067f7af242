"""The only file that reads a clock.

Every process follows its store's clock. An answer of the store tells its time at some moment between question and
answer, so `DisciplinedClock` knows two bounds of the true time. Counted from the moment when the answer arrived, its
time is never ahead; counted from the moment when the question was sent, it is never behind. A process that waits for a
time uses the lower bound, one that computes a time from now (a delay, the next retry) uses the upper bound: so a slow
network makes things late, never early. docs/architecture.md lists which bound is used where.

Between two answers the machine's monotonic clock carries the time on, whatever happens to its wall clock. A slow
answer, such as one that waited for a commit, does not widen the bounds: better ones from a quicker answer are kept for
as long as they can be true.
"""

import time
from typing import Protocol

from clepsydra.core.times import SECOND_US

# How far two clocks may drift apart: a bound of the store's time loses this much with every second.
_DRIFT_PPM = 500


class Clock(Protocol):
    """What time it is, and how much time has passed."""

    def now_us(self) -> int:
        """UTC microseconds."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds since an arbitrary start; never goes back."""
        ...


class BoundedClock(Clock, Protocol):
    """A clock that knows how far it can be trusted. `now_us` is never ahead of the true time."""

    def latest_us(self) -> int:
        """UTC microseconds; never behind the true time."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1000

    def latest_us(self) -> int:
        return self.now_us()

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000


class DisciplinedClock:
    """The store's time, carried on by the machine's monotonic clock.

    >>> class Stopped:
    ...     def now_us(self): return 0
    ...     def monotonic_us(self): return 10
    >>> clock = DisciplinedClock(Stopped())
    >>> clock.anchor(1_000, asked_us=7)
    >>> clock.now_us(), clock.latest_us()
    (1000, 1003)
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        # What is added to the monotonic time, for each bound.
        self._lower_us = self._upper_us = machine.now_us() - machine.monotonic_us()
        # When the store last answered.
        self._anchored_us: int | None = None

    def anchor(self, store_now_us: int, asked_us: int) -> None:
        """Take over the store's time; to be called when its answer arrives.

        `asked_us` is the monotonic time of the question. Bounds from an earlier answer are kept if they are better and
        not contradicted by this one, as they are after a step of the store's clock.
        """
        arrived_us = self._machine.monotonic_us()
        lower_us, upper_us = store_now_us - arrived_us, store_now_us - asked_us
        kept_lower_us, kept_upper_us = lower_us, upper_us
        if self._anchored_us is not None:
            drift_us = -((self._anchored_us - arrived_us) * _DRIFT_PPM // SECOND_US)
            kept_lower_us, kept_upper_us = self._lower_us - drift_us, self._upper_us + drift_us
        self._lower_us = kept_lower_us if lower_us < kept_lower_us <= upper_us else lower_us
        self._upper_us = kept_upper_us if lower_us <= kept_upper_us < upper_us else upper_us
        self._anchored_us = arrived_us

    def now_us(self) -> int:
        """The lower bound."""
        return self._machine.monotonic_us() + self._lower_us

    def latest_us(self) -> int:
        """The upper bound."""
        return self._machine.monotonic_us() + self._upper_us

    def monotonic_us(self) -> int:
        return self._machine.monotonic_us()
