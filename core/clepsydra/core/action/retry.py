"""How long to wait before an occurrence is tried again, and when to give it up."""

from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.times import duration_us
from clepsydra.v1.action_pb2 import RetryPolicy


def retry_delay_us(policy: RetryPolicy, failures: int, fraction: float) -> int:
    """The wait after the given number of failed attempts; `fraction` is a random number from 0 up to 1.

    >>> from clepsydra.core.times import duration
    >>> policy = RetryPolicy(first_delay=duration(100), multiplier=2, max_delay=duration(1000), jitter=0)
    >>> [retry_delay_us(policy, n, 0.5) for n in (1, 2, 5, 10_000)]
    [100, 200, 1000, 1000]
    """
    first_us = duration_us(policy.first_delay)
    max_us = duration_us(policy.max_delay)
    try:
        delay_us = min(max_us, first_us * policy.multiplier ** (failures - 1))
    except OverflowError:
        delay_us = max_us if first_us else 0
    return round(delay_us * (1 + policy.jitter * (2 * fraction - 1)))


def requested_delay_us(requested_us: int) -> int:
    """The delay that a target asked for, within what a user may ask for."""
    return min(max(requested_us, 0), RETRY_DELAY_MAX_US)


def attempts_are_used_up(policy: RetryPolicy, failures: int) -> bool:
    return 0 < policy.max_attempts <= failures


def would_take_too_long(policy: RetryPolicy, first_attempt_us: int, retry_at_us: int) -> bool:
    return policy.HasField("max_elapsed") and retry_at_us - first_attempt_us > duration_us(policy.max_elapsed)
