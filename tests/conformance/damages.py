"""Ways to break the invariant through the port, by what no scheduler and no worker may do."""

from clepsydra.store.port import Action
from tests.conformance.worlds import World


async def lose_row(world: World, action_id: str) -> None:
    """Break the invariant by naming a live row as stale, which no worker may do."""
    await world.store.drop([await world.row_of(action_id)])


async def double_row(world: World, action: Action, *, shard_id: int = 2) -> None:
    """Break the invariant by making a guid current twice, which no scheduler may do."""
    [changed] = await world.carry_out(world.change(action))
    await world.carry_out(world.change(changed, shard_id=shard_id)._replace(action=action))


async def stray(world: World, action_id: str, shard_id: int) -> None:
    """Break the invariant by leaving a row where no worker looks."""
    await world.carry_out(world.create(action_id, shard_id=shard_id))
