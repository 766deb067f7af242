"""Which worker had an attempt in hand that was interrupted, and since when.

A row says under which guid it was moved last, and a lock under which guid which worker holds or held it. All guids of
one worker have their first half in common. Where no lock tells, the worker stays unknown.
"""

from collections.abc import Iterable, Mapping, Sequence

from clepsydra.core.ids import is_same_worker
from clepsydra.core.inspection.running import began_at_us
from clepsydra.core.plan import Holder
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Due, Store


def interrupted_among(rows: Sequence[Due]) -> list[Due]:
    """Rows at another time than their actions are planned for: an attempt began, and never ended."""
    return [due for due in rows if due.action is not None and due.row.scheduled_at_us != due.action.scheduled_at_us]


async def find_holders(
    store: Store, taken: Iterable[tuple[str, str]], interrupted: Sequence[Due]
) -> Mapping[str, Holder]:
    """By action: the worker that had its attempt, where that is certain, and since when.

    `taken` are workers whose locks were taken over, each with the guid of the lock.
    """
    times = [due.row.at_us for due in interrupted]
    try:
        found = await store.running([due.row.action_id for due in interrupted], min(times) - 1, max(times))
    except (Unavailable, OutcomeUnknown):
        return {}
    locks = [*taken, *((each.locked_by, each.guid) for each in found.locks)]
    planned = {due.row.action_id: due.action for due in interrupted}
    return {
        live.row.action_id: Holder(_worker_of(live.rescheduled_by or "", locks), began_at_us(live, action))
        for live in (each.live for each in found.actions)
        if live is not None and (action := planned.get(live.row.action_id)) is not None
    }


def _worker_of(guid: str, locks: Iterable[tuple[str, str]]) -> str:
    return next((name for name, lock_guid in locks if name and lock_guid and is_same_worker(lock_guid, guid)), "")
