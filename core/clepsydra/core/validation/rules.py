"""The building blocks of validation: rules, and the violations that they find.

A rule looks at one value and names what is wrong with it, by a path relative to that value. Nearly every value is
valid, so the valid case allocates nothing: descriptions are made once, and paths are built only on the way back from a
violation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet  # type: ignore[import-not-found]  # the stubs lack it

from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, MILLISECOND_US, MINUTE_US, SECOND_US, us_of


class FieldViolation(NamedTuple):
    """What is wrong, and where: `action.spec.retry.max_attempts`, as seen from the request."""

    path: str
    description: str


Violations = tuple[FieldViolation, ...]
Rule = Callable[[Any], Violations]

VALID: Violations = ()

# The range that protobuf's documentation gives for both Timestamp and Duration.
_NANOS_MAX = 999_999_999


def violation(description: str, path: str = "") -> Violations:
    return (FieldViolation(path, description),)


def under(prefix: str, violations: Violations) -> Violations:
    """The same violations, seen from the enclosing message.

    >>> under("retry", violation("must not be negative", "first_delay"))
    (FieldViolation(path='retry.first_delay', description='must not be negative'),)
    >>> under("headers", violation("is required", "[2].name"))[0].path
    'headers[2].name'
    """
    return tuple(FieldViolation(_joined(prefix, path), description) for path, description in violations)


def _joined(prefix: str, path: str) -> str:
    if not path:
        return prefix
    return prefix + path if path.startswith("[") else f"{prefix}.{path}"


def any_value(_value: object) -> Violations:
    """For a value that cannot be wrong (a bool), and for output-only fields, which a request may carry."""
    return VALID


def message(kind: type[Message], rules: Mapping[str, Rule], *, required: Sequence[str] = ()) -> Rule:
    """A rule for each field; the table must name every field of the message. `required` may name a oneof."""
    descriptor: Any = kind.DESCRIPTOR
    assert set(rules) == set(descriptor.fields_by_name), f"the rules of {descriptor.name} must name each of its fields"
    needed = {name: _field_numbers(descriptor, name) for name in required}
    table = {
        field: (rules[field.name], sum(field.number in numbers for numbers in needed.values()))
        for field in descriptor.fields
    }
    all_needed = len(needed)

    def check(value: Message) -> Violations:
        found = _unknown_fields(unknown) if len(unknown := UnknownFieldSet(value)) else VALID
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
                    found += violation("is required", name)
        return found

    return check


def _field_numbers(descriptor: Any, name: str) -> frozenset[int]:
    """The number of a field, or the numbers of all fields of a oneof, of which at most one is set."""
    oneof = descriptor.oneofs_by_name.get(name)
    return frozenset(field.number for field in (oneof.fields if oneof else [descriptor.fields_by_name[name]]))


def _unknown_fields(unknown: Any) -> Violations:
    """A field of a newer version is refused, because what it asks for would silently not be done."""
    field_number = unknown[0].field_number
    return violation(f"has field number {field_number}, which this version of Clepsydra does not know")


def both(first: Rule, second: Rule) -> Rule:
    """The second rule looks only at values that the first one accepts."""
    return lambda value: first(value) or second(value)


def cached(rule: Rule) -> Rule:
    """For fields in which the same few values come again and again."""
    return lru_cache(maxsize=1024)(rule)


def at_most(entries: int) -> Rule:
    """A limit on the number of entries, whatever they are."""
    too_many = violation(f"must not have more than {entries} entries")
    return lambda values: too_many if len(values) > entries else VALID


def repeated(rule: Rule, entries: int) -> Rule:
    def check(values: Sequence[Any]) -> Violations:
        found = VALID
        for index, value in enumerate(values):
            violations = rule(value)
            if violations:
                found += under(f"[{index}]", violations)
        return found

    return both(at_most(entries), check)


def text(pattern: str, description: str) -> Rule:
    """The whole text must match. An empty text counts as unset and is not checked."""
    matches = re.compile(pattern).fullmatch
    mismatch = violation(f"must be {description}")
    return lambda value: VALID if matches(value) else mismatch


def length(longest: int, unit: str) -> Rule:
    too_long = violation(f"must not be longer than {longest} {unit}")
    return lambda value: VALID if len(value) <= longest else too_long


def number(least: float, most: float) -> Rule:
    """NaN is refused too, because no comparison with it holds."""
    out_of_range = violation(f"must be a number from {least:,} to {most:,}")
    return lambda value: VALID if least <= value <= most else out_of_range


def choice(names: Mapping[str, int]) -> Rule:
    known = frozenset(names.values())
    unknown = violation(f"must be one of {', '.join(names)}")
    return lambda value: VALID if value in known else unknown


def duration_between(least_us: int, most_us: int) -> Rule:
    malformed = violation(f"must have nanos from 0 to {_NANOS_MAX:,}")
    negative = violation("must not be negative")
    out_of_range = violation(f"must last from {format_duration(least_us)} to {format_duration(most_us)}")

    def check(value: Duration) -> Violations:
        seconds, nanos = value.seconds, value.nanos
        if seconds < 0 or nanos < 0:
            return negative
        if nanos > _NANOS_MAX:
            return malformed
        if not least_us <= seconds * SECOND_US - (-nanos // 1000) <= most_us:
            return out_of_range
        return _unknown_fields(unknown) if len(unknown := UnknownFieldSet(value)) else VALID

    return check


_MALFORMED_TIME = violation(f"must have nanos from 0 to {_NANOS_MAX:,}")
_TIME_OUT_OF_RANGE = violation("must be a time from 1970-01-01T00:00:00Z to before 2100-01-01T00:00:00Z")


def time_in_range(value: Timestamp) -> Violations:
    """A Timestamp that every store can hold, before the end of time."""
    if not 0 <= value.nanos <= _NANOS_MAX:
        return _MALFORMED_TIME
    if not 0 <= us_of(value) < END_OF_TIME_US:
        return _TIME_OUT_OF_RANGE
    return _unknown_fields(unknown) if len(unknown := UnknownFieldSet(value)) else VALID


_UNITS = (("d", DAY_US), ("h", HOUR_US), ("min", MINUTE_US), ("s", SECOND_US), ("ms", MILLISECOND_US))


def format_duration(us: int) -> str:
    """A length of time for people, in the largest unit that divides it.

    >>> [format_duration(us) for us in (0, 10_000, 90 * SECOND_US, 365 * DAY_US)]
    ['0 s', '10 ms', '90 s', '365 d']
    """
    if us == 0:
        return "0 s"
    for unit, unit_us in _UNITS:
        if us % unit_us == 0:
            return f"{us // unit_us:,} {unit}"
    return f"{us:,} us"
