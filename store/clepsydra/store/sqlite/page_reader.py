"""Reads a page of a queue, with the actions that its rows name, in one step.

apsw takes Python's global lock for every row. While the event loop is busy, each time may take a switch interval, so a
page would take as long as the loop is busy. So SQLite returns the page as one row: the fields of the rows as one JSON
array, and the messages of their actions, concatenated, as one blob.
"""

import json
from collections.abc import Mapping
from typing import Any

import apsw

from clepsydra.core.tables import make_action, make_due, make_row
from clepsydra.store.port import Action, Due, Queue
from clepsydra.store.sqlite.connection.connect import fetch, value

# The messages of a larger action are read separately: copying them once more costs more than a step.
_PACKED_BYTES = 4096


def read_page(
    connection: apsw.Connection, queue: Queue, shard_id: int, name: str, bounds: Mapping[str, Any]
) -> list[Due]:
    """The rows that a named statement finds in a shard."""
    fields, messages = value(connection, name, {"shard_id": shard_id, "packed_bytes": _PACKED_BYTES, **bounds})
    page, start = [], 0
    for at, action_id, guid, scheduled_at, rescheduled_at, planned_at, meta, spec, status in json.loads(fields):
        row = make_row((queue, shard_id, at, action_id, guid, scheduled_at, rescheduled_at))
        if planned_at is None:
            page.append(make_due((row, None)))
        elif meta + spec + status > _PACKED_BYTES:
            [columns] = fetch(connection, "get_one", (action_id,))
            page.append(make_due((row, Action(*columns))))
        else:
            spec_start = start + meta
            status_start = spec_start + spec
            end = status_start + status
            unpacked = messages[start:spec_start], messages[spec_start:status_start], messages[status_start:end]
            page.append(make_due((row, make_action((action_id, guid, *unpacked, planned_at)))))
            start = end
    return page
