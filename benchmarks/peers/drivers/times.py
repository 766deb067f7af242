"""Microseconds since 1970 as the times that the tools take."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(at_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at_us)


def microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
