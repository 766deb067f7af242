"""How long to wait before something that failed, or found nothing, is tried again."""

from typing import NamedTuple

# Beyond this many doublings every wait has reached its maximum.
_DOUBLINGS_MAX = 30


class Backoff(NamedTuple):
    """Waits that double up to a maximum, with jitter, so that those who failed together do not come back together.

    >>> backoff = Backoff(first_us=10, longest_us=100)
    >>> [backoff.pause_us(failures, fraction=0.0) for failures in (1, 2, 3, 50)]
    [10, 20, 40, 100]
    >>> backoff.pause_us(50, fraction=0.5)
    75
    """

    first_us: int
    longest_us: int
    # A wait is shortened by a random part of up to this much of it.
    jitter: float = 0.5

    def pause_us(self, failures: int, fraction: float) -> int:
        """The wait after this many failures in a row; `fraction` is a random number from 0 up to 1."""
        pause_us = min(self.longest_us, self.first_us << min(failures - 1, _DOUBLINGS_MAX))
        return round(pause_us * (1 - self.jitter * fraction))
