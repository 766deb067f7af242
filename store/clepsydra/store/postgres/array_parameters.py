"""Turns a batch into the array parameters of a statement, which `unnest` turns into rows again.

The driver encodes an array element by element, which costs more than everything else that is done with it. So an array
of numbers or texts is sent as one text, in PostgreSQL's own notation, and the server parses it quickly; only arrays of
bytes are left to the driver. `unnest` pads a shorter array with NULL, so an array of nothing but NULL is sent empty.
"""

from collections.abc import Sequence

from clepsydra.store.port import Advance, Put, Queue, Row

# A text for an array of numbers or texts, a sequence for any other.
ArrayParameters = list[object]

_NOTHING_SEEN = (None, None, None)
# No text of PostgreSQL contains it.
_SEPARATOR = "\0"


def put_parameters(puts: Sequence[Put]) -> ArrayParameters:
    seen, actions, shards, created_at = zip(*puts, strict=True)
    action_ids, guids, meta, spec, status, scheduled_at = zip(*actions, strict=True)
    versions = [
        _NOTHING_SEEN if action is None else (action.guid, action.scheduled_at_us, action.meta) for action in seen
    ]
    seen_guids, seen_scheduled_at, seen_meta = zip(*versions, strict=True)
    return [
        *(text_array(action_ids), text_array(guids), meta, spec, status, number_array(scheduled_at)),
        *(number_array(shards), number_array(created_at)),
        *(without_nulls_only(seen_guids), number_array(seen_scheduled_at), without_nulls_only(seen_meta)),
    ]


def advance_parameters(advances: Sequence[Advance]) -> ArrayParameters:
    rows, to, seen_scheduled_at, status, status_scheduled_at = zip(*advances, strict=True)
    return [
        *key_parameters(rows),
        *(number_array(to), number_array(seen_scheduled_at)),
        *(without_nulls_only(status), number_array(status_scheduled_at)),
    ]


def key_parameters(rows: Sequence[Row]) -> ArrayParameters:
    """Keys of rows of either queue: a row has a time in its own queue, and NULL in the other."""
    if not rows:
        return ["{}"] * 5
    queues, shards, at, action_ids, guids, _due, _rescheduled = zip(*rows, strict=True)
    incoming = Queue.INCOMING
    created_at = [at_us if queue is incoming else None for queue, at_us in zip(queues, at, strict=True)]
    scheduled_at = [None if queue is incoming else at_us for queue, at_us in zip(queues, at, strict=True)]
    return [
        *(number_array(shards), number_array(created_at), number_array(scheduled_at)),
        *(text_array(action_ids), text_array(guids)),
    ]


def number_array(numbers: Sequence[int | None]) -> str:
    """
    >>> number_array([1, None, 3]), number_array([None, None])
    ('{1,NULL,3}', '{}')
    """
    first = numbers[0]
    if numbers.count(first) == len(numbers):
        # The times of attempts that begin or end together are often all the same.
        return "{}" if first is None else "{" + ",".join([str(first)] * len(numbers)) + "}"
    return "{" + ",".join(map(str, numbers)).replace("None", "NULL") + "}"


def text_array(texts: Sequence[str]) -> str:
    r"""
    >>> print(text_array(["a", "NULL", '{"b"}', "c\\d", ""]))
    {"a","NULL","{\"b\"}","c\\d",""}
    """
    joined = _SEPARATOR.join(texts)
    if joined.count(_SEPARATOR) >= len(texts):
        raise ValueError("a text must not contain the character U+0000, which PostgreSQL cannot hold")
    return '{"' + joined.replace("\\", "\\\\").replace('"', '\\"').replace(_SEPARATOR, '","') + '"}'


def without_nulls_only(values: Sequence[object]) -> Sequence[object]:
    """
    >>> without_nulls_only([b"a", None]), without_nulls_only([None, None])
    ([b'a', None], [])
    """
    return [] if values[0] is None and values.count(None) == len(values) else values
