"""The one place that reads a clock.

Every process follows its store's clock: `DisciplinedClock` is set by what the store answers, at the moment when the
answer arrives. The true time is never earlier than that, so an error of the network makes things late, never early;
between two answers the machine's monotonic clock carries the time on, whatever happens to its wall clock.
"""

import time
from typing import Protocol

from clepsydra.core.moments import SECOND_US


class Clock(Protocol):
    """What time it is, and how much has passed."""

    def now_us(self) -> int:
        """UTC microseconds."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds since some moment; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000


class DisciplinedClock:
    """The store's time, carried on by the machine's monotonic clock.

    >>> class Still:
    ...     def now_us(self): return 0
    ...     def monotonic_us(self): return 10
    >>> clock = DisciplinedClock(Still())
    >>> clock.anchor(1_000)
    >>> clock.now_us()
    1000
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._offset_us = machine.now_us() - machine.monotonic_us()

    def anchor(self, store_now_us: int) -> None:
        """Take over the store's time; to be called when its answer arrives."""
        self._offset_us = store_now_us - self._machine.monotonic_us()

    def now_us(self) -> int:
        return self._machine.monotonic_us() + self._offset_us

    def monotonic_us(self) -> int:
        return self._machine.monotonic_us()


def seconds(us: int) -> float:
    """Microseconds as what asyncio's timers take."""
    return us / SECOND_US
