"""What is wrong in the world at this moment, for everybody: outages, broken locks, and whether faults are on at all."""

from collections import Counter

from clepsydra.core.clock import Clock


class Weather:
    def __init__(self, clock: Clock, faults_end_us: int) -> None:
        self._clock = clock
        self.faults_end_us = faults_end_us
        self.is_fair = False
        self.outages = 0
        self.broken_locks = 0
        # Which kinds of faults have really happened, and how often.
        self.marks: Counter[str] = Counter()

    def clear_up(self) -> None:
        """From now on nothing goes wrong any more."""
        self.is_fair = True
        self.outages = self.broken_locks = 0

    def while_faults_last(self, delay_us: int) -> int:
        """A delay, cut so that it ends with the faults."""
        return max(0, min(delay_us, self.faults_end_us - self._clock.now_us()))

    def mark(self, what: str) -> None:
        self.marks[what] += 1
