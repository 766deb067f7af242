"""Times are integers: UTC microseconds since the epoch. Durations are integers of microseconds.

This is the only file that converts protobuf's Timestamp and Duration. It rounds up to a microsecond, so that rounding
makes an attempt late and never early.
"""

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

MILLISECOND_US = 1_000
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
YEAR_US = 365 * DAY_US

# 2100-01-01T00:00:00Z. The time type of every backend can hold it, and every time that a user gives lies before it. The
# row of a paused action lies here.
END_OF_TIME_US = 4_102_444_800 * SECOND_US


def us_of(timestamp: Timestamp) -> int:
    """The microseconds of a Timestamp, rounded up.

    >>> us_of(Timestamp(seconds=1, nanos=1))
    1000001
    """
    return timestamp.seconds * SECOND_US - (-timestamp.nanos // 1000)


def set_us(timestamp: Timestamp, us: int) -> None:
    """Write microseconds into a Timestamp in place, which costs less than making one."""
    timestamp.seconds = us // SECOND_US
    timestamp.nanos = us % SECOND_US * 1000


def timestamp(us: int) -> Timestamp:
    """
    >>> timestamp(1_500_000).nanos
    500000000
    """
    seconds, remainder = divmod(us, SECOND_US)
    return Timestamp(seconds=seconds, nanos=remainder * 1000)


def duration_us(duration: Duration) -> int:
    """The microseconds of a Duration, rounded up.

    >>> duration_us(Duration(seconds=2, nanos=1))
    2000001
    """
    return duration.seconds * SECOND_US - (-duration.nanos // 1000)


def duration(us: int) -> Duration:
    """
    >>> duration(90 * SECOND_US).seconds
    90
    """
    seconds, remainder = divmod(us, SECOND_US)
    return Duration(seconds=seconds, nanos=remainder * 1000)


def seconds(us: int) -> float:
    """Microseconds as the seconds that asyncio's timers take."""
    return us / SECOND_US
