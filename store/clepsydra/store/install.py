"""Making, upgrading and checking an installation: the same steps and the same sentences for every backend.

A backend applies migrations (`clepsydra.schema`) and says how many were applied. From migration 2 on, the table
`schema_migrations` has a row for each.
"""

from collections.abc import Sequence
from typing import Protocol

from clepsydra.store.errors import OtherShards, Unusable

# Enough for the sync loops of a few workers, and few enough that each worker can look at all of them often.
SHARDS_DEFAULT = 8

# The migration that makes the table in which migrations are recorded.
FIRST_RECORDED = 2


class Installation(Protocol):
    """What a backend contributes."""

    # Their number is the version that this Clepsydra needs.
    migrations: Sequence[str]
    # How a user can make a new installation beside this one: "name another file".
    elsewhere: str

    def __str__(self) -> str:
        """The store as it may be shown to anyone."""
        ...

    async def version(self) -> int:
        """How many migrations were applied; 0: there is no installation. Raises Unusable if there is something else."""
        ...

    async def apply(self, version: int, shards: int) -> None:
        """Apply one migration."""
        ...

    async def record(self, versions: Sequence[int]) -> None:
        """Write rows of `schema_migrations`; those that exist stay as they are."""
        ...

    async def count_shards(self) -> int: ...

    async def make_shards(self, count: int) -> None:
        """Make the rows of `shard_locks`, unless somebody else has just made them."""
        ...


async def install(installation: Installation, shards: int | None) -> int:
    """Make the installation if there is none, or upgrade it. Returns its number of shards.

    Without a number, an installation keeps the number that it has. Another number than it has is refused.
    """
    version = await _known_version(installation)
    for number in range(version + 1, len(installation.migrations) + 1):
        await installation.apply(number, shards or SHARDS_DEFAULT)
        if number == 1:
            await installation.make_shards(shards or SHARDS_DEFAULT)
        if number >= FIRST_RECORDED:
            await installation.record(range(1, number + 1))
    existing = await installation.count_shards()
    if shards is not None and existing != shards:
        raise OtherShards(
            f"the store {installation} has {existing} shards, not {shards}, and their number cannot change; "
            f"leave the number out, or {installation.elsewhere}"
        )
    return existing


async def check(installation: Installation) -> int:
    """Make sure that this is an installation of this version. Returns its number of shards."""
    version = await installation.version()
    if version == 0:
        raise Unusable(f"there is no store at {installation}; make one with `clepsydra init`")
    check_version(str(installation), version, len(installation.migrations))
    return await installation.count_shards()


def check_version(store: str, version: int, needed: int) -> None:
    """Refuse a schema of another version than this Clepsydra needs; `store` names it in the sentence."""
    _refuse_newer(store, version, needed)
    if version < needed:
        raise Unusable(
            f"the store {store} has schema version {version}, and this Clepsydra needs {needed}; "
            "upgrade it with `clepsydra init`"
        )


async def _known_version(installation: Installation) -> int:
    version = await installation.version()
    _refuse_newer(str(installation), version, len(installation.migrations))
    return version


def _refuse_newer(store: str, version: int, known: int) -> None:
    if version > known:
        raise Unusable(
            f"the store {store} has schema version {version}, and this Clepsydra knows versions up to {known}; "
            "upgrade Clepsydra"
        )
