"""Parameters with their YQL types. The SDK would send a plain number as Int64, and no column has that type.

A batch is a `List<Struct<...>>` that a text reads with AS_TABLE. Each struct is a tuple here, annotated with the types
that its text declares.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, get_type_hints

import ydb

from clepsydra.store.port import Advance, Lock, Mark, Put, Row

Typed = tuple[Any, Any]

_Bool = Annotated[bool, ydb.PrimitiveType.Bool]
_String = Annotated[bytes, ydb.PrimitiveType.String]
_Utf8 = Annotated[str, ydb.PrimitiveType.Utf8]
_Timestamp = Annotated[int, ydb.PrimitiveType.Timestamp]
_Uint32 = Annotated[int, ydb.PrimitiveType.Uint32]
_Uint64 = Annotated[int, ydb.PrimitiveType.Uint64]


def id_hash(action_id: str) -> int:
    """The first column of the key of `scheduled_actions`: eight bytes of the id's SHA-256, as a little-endian number.

    The queues have only the id, so texts compute the same hash: see the fragment `id_hash` in sql/read.yql.

    >>> id_hash("abc")
    16919744041952114874
    """
    return int.from_bytes(hashlib.sha256(action_id.encode()).digest()[:8], "little")


def number(value: int) -> Typed:
    return value, ydb.PrimitiveType.Uint64


def text(value: str) -> Typed:
    return value, ydb.PrimitiveType.Utf8


def time(us: int) -> Typed:
    return us, ydb.PrimitiveType.Timestamp


def interval(us: int) -> Typed:
    return us, ydb.PrimitiveType.Interval


def flag(value: bool) -> Typed:
    return value, ydb.PrimitiveType.Bool


def after_action(key: tuple[int, str], limit: int) -> dict[str, Typed]:
    """A page of `scheduled_actions`, after a key."""
    hash_of_id, action_id = key
    return {"$after_hash": number(hash_of_id), "$after_id": text(action_id), "$limit": number(limit)}


def marked(mark: Mark) -> dict[str, Typed]:
    return {"$sync_guid": text(mark.sync_guid), "$at": time(mark.at_us)}


def _list_of(struct: type) -> ydb.ListType:
    members = ydb.StructType()
    for name, annotated in get_type_hints(struct, include_extras=True).items():
        members.add_member(name, annotated.__metadata__[0])
    return ydb.ListType(members)


class _PutRow(NamedTuple):
    n: _Uint32
    starts_life: _Bool
    shard_id: _Uint64
    created_at: _Timestamp
    meta_action_id_hash: _Uint64
    meta_action_id: _Utf8
    meta: _String
    meta_action_guid: _Utf8
    spec: _String
    status: _String
    status_scheduled_at: _Timestamp
    was_seen: _Bool
    seen_meta: _String
    seen_guid: _Utf8
    seen_scheduled_at: _Timestamp


_PUTS = _list_of(_PutRow)

_NOT_SEEN = (False, b"", "", 0)


def puts(batch: Sequence[tuple[int, Put]]) -> Typed:
    """Puts, each with its index in the call."""
    return [_put_row(index, put) for index, put in batch], _PUTS


def _put_row(index: int, put: Put) -> _PutRow:
    action_id, guid, meta, spec, status, scheduled_at_us = put.action
    seen = put.seen
    return _PutRow(
        index,
        put.shard_id is not None,
        put.shard_id or 0,
        put.created_at_us,
        id_hash(action_id),
        action_id,
        meta,
        guid,
        spec,
        status,
        scheduled_at_us,
        *(_NOT_SEEN if seen is None else (True, seen.meta, seen.guid, seen.scheduled_at_us)),
    )


class _AdvanceRow(NamedTuple):
    n: _Uint32
    shard_id: _Uint64
    row_at: _Timestamp
    action_id: _Utf8
    action_guid: _Utf8
    id_hash: _Uint64
    removes: _Bool
    to_at: _Timestamp
    compares: _Bool
    seen_scheduled_at: _Timestamp
    writes_status: _Bool
    status: _String
    status_scheduled_at: _Timestamp


_ADVANCES = _list_of(_AdvanceRow)


def advances(batch: Sequence[tuple[int, Advance]]) -> Typed:
    """Advances, each with its index in the call."""
    return [_advance_row(index, advance) for index, advance in batch], _ADVANCES


def _advance_row(index: int, advance: Advance) -> _AdvanceRow:
    row, to_us, seen_us, status, status_scheduled_at_us = advance
    return _AdvanceRow(
        index,
        row.shard_id,
        row.at_us,
        row.action_id,
        row.guid,
        id_hash(row.action_id),
        to_us is None,
        # A removal has no target. The text looks up the source's own key instead, which it reads anyway.
        row.at_us if to_us is None else to_us,
        seen_us is not None,
        seen_us or 0,
        status is not None,
        status or b"",
        status_scheduled_at_us or 0,
    )


class _ActionKey(NamedTuple):
    meta_action_id_hash: _Uint64
    meta_action_id: _Utf8


class _IncomingKey(NamedTuple):
    shard_id: _Uint64
    created_at: _Timestamp
    action_id: _Utf8
    action_guid: _Utf8


class _ProcessingKey(NamedTuple):
    shard_id: _Uint64
    scheduled_at: _Timestamp
    action_id: _Utf8
    action_guid: _Utf8


_ACTION_KEYS = _list_of(_ActionKey)
_INCOMING_KEYS = _list_of(_IncomingKey)
_PROCESSING_KEYS = _list_of(_ProcessingKey)


def action_keys(action_ids: Sequence[str]) -> Typed:
    return [_ActionKey(id_hash(action_id), action_id) for action_id in action_ids], _ACTION_KEYS


def incoming_keys(rows: Sequence[Row]) -> Typed:
    return [_IncomingKey(row.shard_id, row.at_us, row.action_id, row.guid) for row in rows], _INCOMING_KEYS


def processing_keys(rows: Sequence[Row]) -> Typed:
    return [_ProcessingKey(row.shard_id, row.at_us, row.action_id, row.guid) for row in rows], _PROCESSING_KEYS


class _HeldLock(NamedTuple):
    shard_id: _Uint64
    guid: _Utf8


class _NewLock(NamedTuple):
    shard_id: _Uint64
    locked: _Bool = False
    last_lock_guid: _Utf8 = ""
    last_locked_by: _Utf8 = ""
    last_processing_start_at: _Timestamp = 0
    last_heartbeat_at: _Timestamp = 0


class _Version(NamedTuple):
    version: _Uint64


_HELD_LOCKS = _list_of(_HeldLock)
_NEW_LOCKS = _list_of(_NewLock)
_VERSIONS = _list_of(_Version)


def held_locks(locks: Sequence[Lock]) -> Typed:
    return [_HeldLock(*lock) for lock in locks], _HELD_LOCKS


def new_locks(shards: int) -> Typed:
    return [_NewLock(shard_id) for shard_id in range(shards)], _NEW_LOCKS


def versions(numbers: Sequence[int]) -> Typed:
    return [_Version(version) for version in numbers], _VERSIONS
