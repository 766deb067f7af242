"""Times as people write and read them: RFC 3339, always with an offset.

A time without an offset is refused, because it would mean one thing on a laptop and another on a server.
"""

from datetime import UTC, datetime, timedelta

from clepsydra.core.times import END_OF_TIME_US
from clepsydra.tools.format.durations import rounded_duration

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class WrongTime(ValueError):
    """The text is not a time; the message says what to write instead."""


def parse_time_us(text: str) -> int:
    """
    >>> parse_time_us("1970-01-01T00:00:01Z"), parse_time_us("1970-01-01T02:00:00.5+02:00")
    (1000000, 500000)
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongTime(f"{text!r} is not a time: write it like 2027-01-01T07:30:00Z or ...T07:30:00+02:00") from error
    if time.tzinfo is None:
        raise WrongTime(f"{text!r} has no offset: add Z for UTC, or an offset such as +02:00")
    return (time - _EPOCH) // _MICROSECOND


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
    return rfc3339(us - us % 1_000_000)


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
