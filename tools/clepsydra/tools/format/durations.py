"""Durations as people write and read them: 500ms, 5s, 10m, 2h, 1d, 1h30m."""

import re
from decimal import Decimal

from clepsydra.core.times import DAY_US, HOUR_US, MILLISECOND_US, MINUTE_US, SECOND_US, YEAR_US

# The longest unit comes first: durations are written and read in this order.
_UNITS_US = {"w": 7 * DAY_US, "d": DAY_US, "h": HOUR_US, "m": MINUTE_US, "s": SECOND_US, "ms": MILLISECOND_US, "us": 1}
_PART = r"(?:([0-9]+(?:\.[0-9]+)?){unit})?"
_DURATION = re.compile("".join(_PART.format(unit=unit) for unit in _UNITS_US), re.ASCII)
_LONGEST_US = 1000 * YEAR_US


class WrongDuration(ValueError):
    """The text is not a duration; the message says what to write instead."""


def parse_duration_us(text: str) -> int:
    """The microseconds of a duration, rounded up.

    >>> [parse_duration_us(text) for text in ("500ms", "1h30m", "1.5s", "0")]
    [500000, 5400000000, 1500000, 0]
    """
    if text == "0":
        return 0
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise WrongDuration(f"{text!r} is not a duration: write it like 500ms, 5s, 10m, 2h, 1d or 1h30m")
    total = sum(
        (
            Decimal(number) * unit_us
            for number, unit_us in zip(match.groups(), _UNITS_US.values(), strict=True)
            if number
        ),
        Decimal(0),
    )
    if total > _LONGEST_US:
        raise WrongDuration(f"{text!r} is longer than a thousand years")
    return -int(-total // 1)


def exact_duration(us: int) -> str:
    """A duration without rounding, as `parse_duration_us` reads it.

    >>> [exact_duration(us) for us in (0, 1_500_000, 5_400_000_000)]
    ['0s', '1s500ms', '1h30m']
    """
    written = ""
    for unit, unit_us in _UNITS_US.items():
        if unit != "w":  # people read days more easily than weeks
            number, us = divmod(us, unit_us)
            written += f"{number}{unit}" if number else ""
    return written or "0s"
