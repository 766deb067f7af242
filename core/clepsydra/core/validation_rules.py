"""What the tables in `validation.py` are made of: rules, and the violations that they find.

A rule looks at one value and names what is wrong with it, by a path relative to that value. Nearly every value is
fine, so the valid case allocates nothing: descriptions are made once, and paths are put together only on the way back
from a violation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet  # type: ignore[import-not-found]  # the stubs lack it

from clepsydra.core.moments import (
    DAY_US,
    END_OF_TIME_US,
    HOUR_US,
    MILLISECOND_US,
    MINUTE_US,
    SECOND_US,
    us_of,
)


class FieldViolation(NamedTuple):
    """What is wrong, and where: `action.spec.retry.max_attempts`, as seen from the request."""

    path: str
    description: str


Violations = tuple[FieldViolation, ...]
Rule = Callable[[Any], Violations]

FINE: Violations = ()

# As protobuf's own documentation has it, for both Timestamp and Duration.
_NANOS_MAX = 999_999_999


def wrong(description: str, path: str = "") -> Violations:
    return (FieldViolation(path, description),)


def under(prefix: str, violations: Violations) -> Violations:
    """The same violations, seen from one message further out.

    >>> under("retry", wrong("must not be negative", "first_delay"))
    (FieldViolation(path='retry.first_delay', description='must not be negative'),)
    >>> under("headers", wrong("is required", "[2].name"))[0].path
    'headers[2].name'
    """
    return tuple(FieldViolation(_joined(prefix, path), description) for path, description in violations)


def _joined(prefix: str, path: str) -> str:
    if not path:
        return prefix
    return prefix + path if path.startswith("[") else f"{prefix}.{path}"


def anything(_value: object) -> Violations:
    """For what cannot be wrong (a bool), and for what is written by the scheduler and ignored in a request."""
    return FINE


def message(kind: type[Message], rules: Mapping[str, Rule], *, required: Sequence[str] = ()) -> Rule:
    """A rule for each field, in a table that must name them all; `required` may name a oneof."""
    descriptor: Any = kind.DESCRIPTOR
    assert set(rules) == set(descriptor.fields_by_name), f"the rules of {descriptor.name} must name each of its fields"
    needed = {name: _numbers_of(descriptor, name) for name in required}
    table = {
        field: (rules[field.name], sum(field.number in numbers for numbers in needed.values()))
        for field in descriptor.fields
    }
    all_needed = len(needed)

    def check(value: Message) -> Violations:
        found = _unknown_fields(value) if len(UnknownFieldSet(value)) else FINE
        fields = value.ListFields()
        present = 0
        for field, part in fields:
            rule, is_needed = table[field]
            present += is_needed
            violations = rule(part)
            if violations:
                found += under(field.name, violations)
        if present != all_needed:
            are_set = {field.number for field, _ in fields}
            for name, numbers in needed.items():
                if are_set.isdisjoint(numbers):
                    found += wrong("is required", name)
        return found

    return check


def _numbers_of(descriptor: Any, name: str) -> frozenset[int]:
    """Of a field, or of the fields of a oneof: no two of those are ever set."""
    oneof = descriptor.oneofs_by_name.get(name)
    return frozenset(field.number for field in (oneof.fields if oneof else [descriptor.fields_by_name[name]]))


def _unknown_fields(value: Message) -> Violations:
    """A field from a newer version asks for something that would silently not be done, so it is refused."""
    field_number = UnknownFieldSet(value)[0].field_number
    return wrong(f"has field number {field_number}, which this version of Clepsydra does not know")


def both(first: Rule, second: Rule) -> Rule:
    """The second is asked only about what the first found fine."""
    return lambda value: first(value) or second(value)


def familiar(rule: Rule) -> Rule:
    """For values of which the same few come again and again: those are not looked at each time."""
    return lru_cache(maxsize=1024)(rule)


def few(at_most: int) -> Rule:
    """No more than so many; what they are is not looked at."""
    too_many = wrong(f"must not have more than {at_most} entries")
    return lambda values: too_many if len(values) > at_most else FINE


def repeated(rule: Rule, at_most: int) -> Rule:
    def check(values: Sequence[Any]) -> Violations:
        found = FINE
        for index, value in enumerate(values):
            violations = rule(value)
            if violations:
                found += under(f"[{index}]", violations)
        return found

    return both(few(at_most), check)


def text(pattern: str, description: str) -> Rule:
    """The whole text must match; an empty one is as good as unset and never gets here."""
    matches = re.compile(pattern).fullmatch
    violation = wrong(f"must be {description}")
    return lambda value: FINE if matches(value) else violation


def length(at_most: int, unit: str) -> Rule:
    violation = wrong(f"must not be longer than {at_most} {unit}")
    return lambda value: FINE if len(value) <= at_most else violation


def number(least: float, most: float) -> Rule:
    """NaN lies between no two numbers."""
    violation = wrong(f"must be a number from {least:,} to {most:,}")
    return lambda value: FINE if least <= value <= most else violation


def choice(names: Mapping[str, int]) -> Rule:
    known = frozenset(names.values())
    violation = wrong(f"must be one of {', '.join(names)}")
    return lambda value: FINE if value in known else violation


def lasting(least_us: int, most_us: int) -> Rule:
    """A Duration between two lengths."""
    malformed = wrong(f"must have nanos from 0 to {_NANOS_MAX:,}")
    negative = wrong("must not be negative")
    out_of_range = wrong(f"must last from {spoken(least_us)} to {spoken(most_us)}")

    def check(value: Duration) -> Violations:
        seconds, nanos = value.seconds, value.nanos
        if seconds < 0 or nanos < 0:
            return negative
        if nanos > _NANOS_MAX:
            return malformed
        if not least_us <= seconds * SECOND_US - (-nanos // 1000) <= most_us:
            return out_of_range
        return _unknown_fields(value) if len(UnknownFieldSet(value)) else FINE

    return check


_MALFORMED_TIME = wrong(f"must have nanos from 0 to {_NANOS_MAX:,}")
_OUT_OF_TIME = wrong("must be a time from 1970-01-01T00:00:00Z to before 2100-01-01T00:00:00Z")


def moment(value: Timestamp) -> Violations:
    """A Timestamp that every store can hold, below the end of time."""
    if not 0 <= value.nanos <= _NANOS_MAX:
        return _MALFORMED_TIME
    if not 0 <= us_of(value) < END_OF_TIME_US:
        return _OUT_OF_TIME
    return _unknown_fields(value) if len(UnknownFieldSet(value)) else FINE


_UNITS = (("d", DAY_US), ("h", HOUR_US), ("min", MINUTE_US), ("s", SECOND_US), ("ms", MILLISECOND_US))


def spoken(us: int) -> str:
    """A length of time for people, in the largest unit that holds it without a rest.

    >>> [spoken(us) for us in (0, 10_000, 90 * SECOND_US, 365 * DAY_US)]
    ['0 s', '10 ms', '90 s', '365 d']
    """
    if us == 0:
        return "0 s"
    for unit, unit_us in _UNITS:
        if us % unit_us == 0:
            return f"{us // unit_us:,} {unit}"
    return f"{us:,} us"
