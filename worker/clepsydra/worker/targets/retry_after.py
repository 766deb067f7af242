"""The wait that an HTTP server asks for with `Retry-After`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.times import SECOND_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def retry_after_us(headers: Mapping[str, str], fallback_now_us: int) -> int | None:
    """The wait that the server asks for, or None if the retry policy shall decide.

    A date is compared with the server's own `Date`, so that its clock need not agree with ours; `fallback_now_us` is
    used if it sends none. Zero, the past and unreadable values leave the wait to the policy.

    >>> retry_after_us({"Retry-After": "120"}, 0)
    120000000
    >>> retry_after_us({"Retry-After": "soon"}, 0) is None
    True
    """
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        # An integer with more digits than any allowed wait is not even parsed.
        wait_us = int(asked) * SECOND_US if len(asked) < 18 else RETRY_DELAY_MAX_US
    else:
        until_us = _http_date_us(asked)
        if until_us is None:
            return None
        now_us = _http_date_us(headers.get("Date", ""))
        wait_us = until_us - (fallback_now_us if now_us is None else now_us)
    return min(wait_us, RETRY_DELAY_MAX_US) if wait_us > 0 else None


def _http_date_us(text: str) -> int | None:
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int((moment - _EPOCH).total_seconds()) * SECOND_US
    except (ValueError, OverflowError):
        return None
