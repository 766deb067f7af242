"""Times and durations as integers: exact where they can be, late and never early where they cannot."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core.times import END_OF_TIME_US, SECOND_US, duration, duration_us, set_us, timestamp, us_of

MOMENTS_US = [0, 1, 999_999, SECOND_US, SECOND_US + 1, 1_767_268_800_123_456, END_OF_TIME_US, -1, -SECOND_US - 1]


@pytest.mark.parametrize("us", MOMENTS_US)
def test_a_moment_comes_back_as_it_went(us: int) -> None:
    assert us_of(timestamp(us)) == us
    assert timestamp(us).ToMicroseconds() == us
    in_place = Timestamp(seconds=5, nanos=7)
    set_us(in_place, us)
    assert in_place == timestamp(us)


@pytest.mark.parametrize("us", [0, 1, 999_999, SECOND_US, 90 * SECOND_US + 1, 10**15])
def test_a_duration_comes_back_as_it_went(us: int) -> None:
    assert duration_us(duration(us)) == us
    assert duration(us).ToMicroseconds() == us


@pytest.mark.parametrize(("nanos", "us"), [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (999_999_999, SECOND_US)])
def test_what_is_finer_than_a_microsecond_is_rounded_to_later_and_longer(nanos: int, us: int) -> None:
    assert us_of(Timestamp(seconds=3, nanos=nanos)) == 3 * SECOND_US + us
    assert duration_us(Duration(seconds=3, nanos=nanos)) == 3 * SECOND_US + us


def test_a_negative_duration_is_rounded_in_the_same_direction() -> None:
    assert duration_us(Duration(seconds=-1, nanos=-1)) == -SECOND_US
    assert duration_us(Duration(seconds=-1, nanos=-1_000)) == -SECOND_US - 1


def test_the_end_of_time_is_the_first_moment_of_2100() -> None:
    assert timestamp(END_OF_TIME_US).ToJsonString() == "2100-01-01T00:00:00Z"
