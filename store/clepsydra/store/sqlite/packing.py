"""A page of a queue, with the actions that its rows name, read in one step.

apsw gives Python's global lock back and takes it again with every row. While the event loop is at work, each time takes
up to a switch interval, so a page would be read for as long as the loop is busy. So SQLite puts the page together: the
heads of its rows as one array, and the bodies of their actions, one after the other, as one blob.
"""

import json
from collections.abc import Mapping
from typing import Any

import apsw

from clepsydra.core.tables import make_action, make_due, make_row
from clepsydra.store.port import Action, Due, Queue
from clepsydra.store.sqlite.connection import fetch, value

# A larger body is read by itself: to copy it once more costs more than a step.
_PACKED_BYTES = 4096


def read_page(
    connection: apsw.Connection, queue: Queue, shard_id: int, name: str, bounds: Mapping[str, Any]
) -> list[Due]:
    """What a named statement finds in a shard."""
    heads, bodies = value(connection, name, {"shard_id": shard_id, "packed_bytes": _PACKED_BYTES, **bounds})
    page, start = [], 0
    for at, action_id, guid, scheduled_at, rescheduled_at, planned_at, meta, spec, status in json.loads(heads):
        row = make_row((queue, shard_id, at, action_id, guid, scheduled_at, rescheduled_at))
        if planned_at is None:
            page.append(make_due((row, None)))
        elif meta + spec + status > _PACKED_BYTES:
            page.append(make_due((row, _action(connection, action_id))))
        else:
            spec_start = start + meta
            status_start = spec_start + spec
            end = status_start + status
            body = bodies[start:spec_start], bodies[spec_start:status_start], bodies[status_start:end]
            page.append(make_due((row, make_action((action_id, guid, *body, planned_at)))))
            start = end
    return page


def _action(connection: apsw.Connection, action_id: str) -> Action:
    [(_, *columns)] = fetch(connection, "get_one", (action_id,))
    return Action(*columns)
