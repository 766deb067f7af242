"""Times as people write and read them: RFC 3339, always with an offset.

A time without an offset is refused, because it would mean one thing on a laptop and another on a server.
"""

from datetime import UTC, datetime, timedelta

from clepsydra.core.wording import relative_time, rfc3339, to_the_second

__all__ = ["WrongTime", "parse_time_us", "relative_time", "rfc3339", "to_the_second"]

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
