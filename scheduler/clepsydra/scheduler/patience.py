"""How long to wait before a store is asked again."""

from clepsydra.core.clock import seconds
from clepsydra.core.moments import MILLISECOND_US, SECOND_US

# A store that certainly did nothing is asked this often in all; then the caller is told.
TRIES = 5

_FIRST_US = 20 * MILLISECOND_US
_LONGEST_US = SECOND_US


def pause_s(failures: int, fraction: float) -> float:
    """Twice as long each time, up to a second, and spread by a random fraction so that callers do not come together.

    >>> [pause_s(failures, 0.5) for failures in (1, 2, 20)]
    [0.02, 0.04, 1.0]
    """
    return seconds(min(_FIRST_US * 2 ** min(failures - 1, 10), _LONGEST_US)) * (0.5 + fraction)
