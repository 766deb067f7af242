"""The reads of actions and rows, each from one snapshot."""

from collections.abc import Sequence

from clepsydra.core.tables import make_action, make_due, make_row
from clepsydra.store.port import Action, Due, Page, Queue, Row, StalePage
from clepsydra.store.postgres.calls import Calls

# A member of an enum is looked up at some cost, and this is done for every row that is executed.
_INCOMING, _PROCESSING = Queue.INCOMING, Queue.PROCESSING


async def get(calls: Calls, action_ids: Sequence[str]) -> list[Action | None]:
    found = {columns[0]: Action(*columns) for columns in await calls.read("get", list(action_ids))}
    return [found.get(action_id) for action_id in action_ids]


async def list_actions(calls: Calls, after_id: str | None, limit: int) -> list[Action]:
    return [Action(*columns) for columns in await calls.read("list_actions", after_id or "", limit)]


async def due(
    calls: Calls,
    shard_id: int,
    incoming_from_us: int,
    incoming_limit: int,
    from_us: int,
    until_us: int,
    limit: int,
) -> Page:
    rows = await calls.read("due", shard_id, incoming_from_us, incoming_limit, from_us, until_us, limit)
    incoming: list[Due] = []
    due: list[Due] = []
    for is_incoming, at_us, action_id, guid, scheduled_at_us, rescheduled_at_us, meta, spec, status, planned_us in rows:
        action = None if meta is None else make_action((action_id, guid, meta, spec, status, planned_us))
        queue = _INCOMING if is_incoming else _PROCESSING
        row = make_row((queue, shard_id, at_us, action_id, guid, scheduled_at_us, rescheduled_at_us))
        (incoming if is_incoming else due).append(make_due((row, action)))
    return Page(incoming, due)


async def soon(calls: Calls, shard_id: int, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
    rows = await calls.read("soon", shard_id, incoming_from_us, until_us, limit)
    return [Row(Queue.INCOMING, shard_id, *columns) for columns in rows]


async def stale(calls: Calls, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
    start = max(after or (from_us, "", ""), (from_us, "", ""))
    # One more than was asked for tells whether there is more.
    rows = await calls.read("stale_page", shard_id, *start, limit + 1)
    page = rows[:limit]
    found = [
        Row(Queue.PROCESSING, shard_id, scheduled_at_us, action_id, guid, scheduled_at_us, rescheduled_at_us)
        for scheduled_at_us, action_id, guid, rescheduled_at_us, is_stale in page
        if is_stale
    ]
    last = page[-1] if len(rows) > limit else None
    return StalePage(found, None if last is None else (last[0], last[1], last[2]), len(page))
