"""Both forms of Retry-After, and everything that is neither."""

import pytest

from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.times import SECOND_US
from clepsydra.worker.targets.retry_after import retry_after_us

DATE_S = 784_111_777
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
MINUTE_LATER = "Sun, 06 Nov 1994 08:50:37 GMT"


@pytest.mark.parametrize(
    ("asked", "wait_s"),
    [
        ("1", 1),
        (" 120 ", 120),
        ("007", 7),
        (MINUTE_LATER, 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
    ],
)
def test_seconds_and_dates(asked: str, wait_s: int) -> None:
    assert retry_after_us({"Retry-After": asked, "Date": DATE}, 0) == wait_s * SECOND_US


@pytest.mark.parametrize("asked", ["99999999", "9" * 17, "9" * 18, "9" * 10_000, "Fri, 31 Dec 9999 23:59:59 -2359"])
def test_a_long_wait_is_cut(asked: str) -> None:
    assert retry_after_us({"Retry-After": asked, "Date": DATE}, 0) == RETRY_DELAY_MAX_US


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "0",
        "-5",
        "1.5",
        "1e3",
        "٣",
        "²",
        "soon",
        DATE,
        "Sun, 06 Nov 1994 08:49:00 GMT",
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 +99999999999999999999",
        "\udcff",
    ],
)
def test_zero_the_past_and_nonsense_leave_it_to_the_policy(asked: str) -> None:
    assert retry_after_us({"Retry-After": asked, "Date": DATE}, 0) is None


def test_no_header() -> None:
    assert retry_after_us({}, 0) is None


@pytest.mark.parametrize("date", ["", "today", "\udcff"])
def test_without_a_date_of_the_server_the_attempts_time_serves(date: str) -> None:
    headers = {"Retry-After": MINUTE_LATER, "Date": date}
    assert retry_after_us(headers, DATE_S * SECOND_US) == 60 * SECOND_US
