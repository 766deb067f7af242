"""Creation in an application's own transaction: what it finds there, whatever the store."""

from typing import NamedTuple

from clepsydra.store.port import Action


class Place(NamedTuple):
    """The installation at this moment, and what it has under the id in question."""

    shards: int
    now_us: int
    current: Action | None
