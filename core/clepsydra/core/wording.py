"""Times and durations in sentences for people."""

from datetime import UTC, datetime, timedelta

from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, MILLISECOND_US, MINUTE_US, SECOND_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAIRS = (("d", DAY_US, "h", HOUR_US), ("h", HOUR_US, "m", MINUTE_US), ("m", MINUTE_US, "s", SECOND_US))


def rfc3339(us: int) -> str:
    """A time in UTC, to the microsecond if it has a fraction of a second.

    >>> rfc3339(1_000_000), rfc3339(1_500_000)
    ('1970-01-01T00:00:01Z', '1970-01-01T00:00:01.500000Z')
    """
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def to_the_second(us: int) -> str:
    """A time for a table, rounded down.

    >>> to_the_second(1_700_000)
    '1970-01-01T00:00:01Z'
    """
    return rfc3339(us - us % SECOND_US)


def rounded_duration(us: int) -> str:
    """A rounded duration for a table: its two largest units.

    >>> [rounded_duration(us) for us in (0, 1_500, 250_000, 4_200_000, 90 * SECOND_US, 26 * HOUR_US)]
    ['0s', '1.5ms', '250ms', '4.2s', '1m30s', '1d2h']
    """
    if us < MILLISECOND_US:
        return f"{us}us" if us else "0s"
    if us < SECOND_US:
        return f"{us / MILLISECOND_US:.3g}ms"
    if us < MINUTE_US:
        return f"{us / SECOND_US:.2g}s" if us < 10 * SECOND_US else f"{us // SECOND_US}s"
    large, large_us, small, small_us = next(pair for pair in _PAIRS if us >= pair[1])
    number, remainder_us = divmod(us, large_us)
    small_number = remainder_us // small_us
    return f"{number}{large}{small_number}{small}" if small_number else f"{number}{large}"


def relative_time(us: int, now_us: int) -> str:
    """A time relative to now.

    >>> relative_time(5_000_000, 0), relative_time(0, 5_000_000), relative_time(0, 0)
    ('in 5s', '5s ago', 'now')
    """
    if us >= END_OF_TIME_US:
        return "never"
    if us == now_us:
        return "now"
    return f"in {rounded_duration(us - now_us)}" if us > now_us else f"{rounded_duration(now_us - us)} ago"


def time_and_distance(us: int, now_us: int) -> str:
    """
    >>> time_and_distance(5_000_000, 0)
    '1970-01-01T00:00:05Z (in 5s)'
    """
    return f"{to_the_second(us)} ({relative_time(us, now_us)})"
