"""A batch as a statement takes it: its columns, as arrays, which `unnest` turns back into rows.

The driver looks at every element of an array twice, which costs more than all else that is done with it. So numbers and
texts go as one text each, an array as PostgreSQL itself writes it, whose parser is quick; only bytes go as they are.
`unnest` fills up a shorter array with NULL, so a column of nothing but NULL is an empty one.
"""

from collections.abc import Sequence

from clepsydra.store.port import Advance, Put, Queue, Row

# One text, or a sequence of bytes, for each column.
Columns = list[object]

_NOT_SEEN = (None, None, None)
# No text of PostgreSQL contains it.
_BETWEEN = "\0"


def of_puts(puts: Sequence[Put]) -> Columns:
    seen, actions, shards, created_at = zip(*puts, strict=True)
    action_ids, guids, meta, spec, status, scheduled_at = zip(*actions, strict=True)
    versions = [_NOT_SEEN if action is None else (action.guid, action.scheduled_at_us, action.meta) for action in seen]
    seen_guids, seen_scheduled_at, seen_meta = zip(*versions, strict=True)
    return [
        *(texts(action_ids), texts(guids), meta, spec, status, numbers(scheduled_at)),
        *(numbers(shards), numbers(created_at)),
        *(values(seen_guids), numbers(seen_scheduled_at), values(seen_meta)),
    ]


def of_advances(advances: Sequence[Advance]) -> Columns:
    rows, to, seen_scheduled_at, status, status_scheduled_at = zip(*advances, strict=True)
    return [
        *of_rows(rows),
        *(numbers(to), numbers(seen_scheduled_at), values(status), numbers(status_scheduled_at)),
    ]


def of_rows(rows: Sequence[Row]) -> Columns:
    """Their keys: a row has a time in one of the two queues, and none in the other."""
    if not rows:
        return ["{}"] * 5
    queues, shards, at, action_ids, guids, _due, _rescheduled = zip(*rows, strict=True)
    incoming = Queue.INCOMING
    created_at = [at_us if queue is incoming else None for queue, at_us in zip(queues, at, strict=True)]
    scheduled_at = [None if queue is incoming else at_us for queue, at_us in zip(queues, at, strict=True)]
    return [numbers(shards), numbers(created_at), numbers(scheduled_at), texts(action_ids), texts(guids)]


def numbers(column: Sequence[int | None]) -> str:
    """
    >>> numbers([1, None, 3]), numbers([None, None])
    ('{1,NULL,3}', '{}')
    """
    first = column[0]
    if column.count(first) == len(column):
        # As the times of what begins or ends together are.
        return "{}" if first is None else "{" + ",".join([str(first)] * len(column)) + "}"
    return "{" + ",".join(map(str, column)).replace("None", "NULL") + "}"


def texts(column: Sequence[str]) -> str:
    r"""
    >>> print(texts(["a", "NULL", '{"b"}', "c\\d", ""]))
    {"a","NULL","{\"b\"}","c\\d",""}
    """
    joined = _BETWEEN.join(column)
    if joined.count(_BETWEEN) >= len(column):
        raise ValueError("a text must not contain the character U+0000, which PostgreSQL cannot hold")
    return '{"' + joined.replace("\\", "\\\\").replace('"', '\\"').replace(_BETWEEN, '","') + '"}'


def values(column: Sequence[object]) -> Sequence[object]:
    """
    >>> values([b"a", None]), values([None, None])
    ([b'a', None], [])
    """
    return [] if _is_nothing(column) else column


def _is_nothing(column: Sequence[object]) -> bool:
    return column[0] is None and column.count(None) == len(column)
