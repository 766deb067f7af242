"""What happened in a run, in order: to be read by people, and to be compared by its digest."""

import hashlib
from collections.abc import Iterator
from typing import Any

from clepsydra.core.clock import Clock
from clepsydra.core.times import SECOND_US

Event = tuple[int, str, str, tuple[Any, ...]]


class History:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_us = clock.now_us()
        self._events: list[Event] = []
        self._is_closed = False

    def note(self, who: str, what: str, *details: Any) -> None:
        """Details are values that print the same in every process."""
        if not self._is_closed:
            self._events.append((self._clock.now_us(), who, what, details))

    def close(self) -> None:
        """The run has been judged: what is left of it does not belong here."""
        self._is_closed = True

    def __len__(self) -> int:
        return len(self._events)

    def digest(self) -> str:
        return hashlib.blake2b(repr(self._events).encode(), digest_size=16).hexdigest()

    def lines(self) -> Iterator[str]:
        for at_us, who, what, details in self._events:
            seconds = (at_us - self._start_us) / SECOND_US
            yield f"{seconds:11.6f}  {who:<16} {what:<12} {' '.join(self._told(detail) for detail in details)}"

    def _told(self, detail: Any) -> str:
        """Times are told as seconds since the start, guids by their first letters."""
        if isinstance(detail, int) and abs(detail - self._start_us) < 10**12:
            return f"@{(detail - self._start_us) / SECOND_US:.6f}"
        if isinstance(detail, tuple | list):
            return f"({' '.join(self._told(part) for part in detail)})"
        text = str(detail)
        return text[:6] if len(text) == 32 else text
