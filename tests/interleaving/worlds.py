"""The small worlds that are explored: each completely, so there are many of them rather than a huge one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.interleaving.world import Shape

_CREATE = ("create", 0)
_KINDS = ("update", "retarget", "chain", "settings", "delete", "pause", "run", "cancel")
_SECOND_KINDS = ("create", "update", "retarget", "settings", "delete", "pause", "resume", "run", "cancel")

# How much may go wrong in a world.
_NOTHING = Shape((_CREATE,), begins=1, crashes=0, troubles=0)
_CRASH = replace(_NOTHING, crashes=1)
_TROUBLE = replace(_NOTHING, troubles=1)
_BOTH = replace(_NOTHING, crashes=1, troubles=1)


def few_worlds() -> Iterator[Shape]:
    """Enough to notice a mistake within seconds."""
    yield replace(_CRASH, begins=2)
    yield replace(_BOTH, periodic=True)
    yield replace(_BOTH, kept_us=0)
    for kind in _KINDS:
        yield replace(_CRASH, calls=(_CREATE, (kind, 0)), purges=True, waits_to_drop=True)
    yield replace(_TROUBLE, calls=(_CREATE, ("delete", 0)))
    yield replace(_TROUBLE, calls=(_CREATE, ("cancel", 0)), periodic=True)
    yield replace(_NOTHING, calls=(_CREATE, ("cancel", 0), ("update", 0)), overlapping=True)
    yield replace(_NOTHING, calls=(_CREATE, ("update", 0), ("delete", 0)), overlapping=True)
    yield replace(_NOTHING, calls=(_CREATE, ("chain", 0), ("settings", 0)), overlapping=True)
    yield replace(_TROUBLE, calls=(_CREATE, ("chain", 0)))
    yield replace(_NOTHING, calls=(_CREATE, ("pause", 0), ("resume", 0)), shards=2)
    yield replace(_NOTHING, calls=(_CREATE, ("create", 1), ("delete", 0)))


def many_worlds() -> Iterator[Shape]:
    """One action and a life of its own; then what a user can do to it; then two actions. For `make prove`."""
    for single in (_BOTH, replace(_BOTH, periodic=True), replace(_BOTH, kept_us=0), replace(_BOTH, purges=True)):
        yield replace(single, begins=2)
        yield replace(single, begins=3, troubles=0)
    for kind in _KINDS:
        twice = (_CREATE, (kind, 0))
        yield replace(_BOTH, calls=twice)
        yield replace(_CRASH, calls=twice, begins=2)
        yield replace(_CRASH, calls=twice, purges=True, waits_to_drop=True)
        yield replace(_TROUBLE, calls=twice, overlapping=True)
        yield replace(_TROUBLE, calls=twice, kept_us=0, purges=True)
    for second, third in product(_KINDS, _SECOND_KINDS):
        calls = (_CREATE, (second, 0), (third, 0))
        yield replace(_CRASH, calls=calls)
        yield replace(_NOTHING, calls=calls, overlapping=True)
        if second in ("update", "delete"):
            yield replace(_NOTHING, calls=calls, shards=2)
            yield replace(_BOTH, calls=calls, begins=0, purges=True)
    for kind in _KINDS:
        yield replace(_NOTHING, calls=(_CREATE, ("create", 1), (kind, 0)))


def all_worlds() -> Iterator[Shape]:
    """These, and the larger ones, which take longer than they are likely to find anything."""
    yield from many_worlds()
    for kind in _KINDS:
        twice = (_CREATE, (kind, 0))
        yield replace(_CRASH, calls=twice, begins=2, purges=True, waits_to_drop=True)
        yield replace(_BOTH, calls=twice, overlapping=True)
    for second, third in product(("settings", "pause", "run"), _SECOND_KINDS):
        calls = (_CREATE, (second, 0), (third, 0))
        yield replace(_NOTHING, calls=calls, shards=2)
        yield replace(_BOTH, calls=calls, begins=0, purges=True)
