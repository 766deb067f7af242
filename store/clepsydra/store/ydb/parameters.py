"""Parameters with their types: a plain number would be sent as Int64, and no key is one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ydb

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.port import Advance, Lock, Put, Row
from clepsydra.store.ydb.hashing import id_hash

_BOOL = ydb.PrimitiveType.Bool
_BYTES = ydb.PrimitiveType.String
_TEXT = ydb.PrimitiveType.Utf8
_TIME = ydb.PrimitiveType.Timestamp
_UINT32 = ydb.PrimitiveType.Uint32
_UINT64 = ydb.PrimitiveType.Uint64

Typed = tuple[Any, Any]


def _rows_of(**members: ydb.PrimitiveType) -> ydb.ListType:
    struct = ydb.StructType()
    for name, member in members.items():
        struct.add_member(name, member)
    return ydb.ListType(struct)


def number(value: int) -> Typed:
    return value, _UINT64


def text(value: str) -> Typed:
    return value, _TEXT


def time(us: int) -> Typed:
    return us, _TIME


def flag(value: bool) -> Typed:
    return value, _BOOL


CALL_RETRY: Typed = (CALL_RETRY_US, ydb.PrimitiveType.Interval)


class _PutRow(NamedTuple):
    n: int
    starts_life: bool
    shard_id: int
    created_at: int
    meta_action_id_hash: int
    meta_action_id: str
    meta: bytes
    meta_action_guid: str
    spec: bytes
    status: bytes
    status_scheduled_at: int
    saw: bool
    seen_meta: bytes
    seen_guid: str
    seen_scheduled_at: int


_PUTS = _rows_of(
    n=_UINT32,
    starts_life=_BOOL,
    shard_id=_UINT64,
    created_at=_TIME,
    meta_action_id_hash=_UINT64,
    meta_action_id=_TEXT,
    meta=_BYTES,
    meta_action_guid=_TEXT,
    spec=_BYTES,
    status=_BYTES,
    status_scheduled_at=_TIME,
    saw=_BOOL,
    seen_meta=_BYTES,
    seen_guid=_TEXT,
    seen_scheduled_at=_TIME,
)

_NOT_SEEN = (False, b"", "", 0)


def puts(batch: Sequence[tuple[int, Put]]) -> Typed:
    return [_put_row(place, put) for place, put in batch], _PUTS


def _put_row(place: int, put: Put) -> _PutRow:
    action_id, guid, meta, spec, status, scheduled_at_us = put.action
    seen = put.seen
    return _PutRow(
        place,
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


class _ActionKey(NamedTuple):
    meta_action_id_hash: int
    meta_action_id: str


_ACTION_KEYS = _rows_of(meta_action_id_hash=_UINT64, meta_action_id=_TEXT)


def action_keys(action_ids: Sequence[str]) -> Typed:
    return [_ActionKey(id_hash(action_id), action_id) for action_id in action_ids], _ACTION_KEYS


class _LockKey(NamedTuple):
    shard_id: int
    guid: str


_LOCK_KEYS = _rows_of(shard_id=_UINT64, guid=_TEXT)


def lock_keys(locks: Sequence[Lock]) -> Typed:
    return [_LockKey(*lock) for lock in locks], _LOCK_KEYS


class _IncomingKey(NamedTuple):
    shard_id: int
    created_at: int
    action_id: str
    action_guid: str


class _ProcessingKey(NamedTuple):
    shard_id: int
    scheduled_at: int
    action_id: str
    action_guid: str


_INCOMING_KEYS = _rows_of(shard_id=_UINT64, created_at=_TIME, action_id=_TEXT, action_guid=_TEXT)
_PROCESSING_KEYS = _rows_of(shard_id=_UINT64, scheduled_at=_TIME, action_id=_TEXT, action_guid=_TEXT)


def incoming_keys(rows: Sequence[Row]) -> Typed:
    return [_IncomingKey(row.shard_id, row.at_us, row.action_id, row.guid) for row in rows], _INCOMING_KEYS


def processing_keys(rows: Sequence[Row]) -> Typed:
    return [_ProcessingKey(row.shard_id, row.at_us, row.action_id, row.guid) for row in rows], _PROCESSING_KEYS


class _AdvanceRow(NamedTuple):
    n: int
    shard_id: int
    row_at: int
    action_id: str
    action_guid: str
    id_hash: int
    removes: bool
    to_at: int
    compares: bool
    seen_scheduled_at: int
    writes_status: bool
    status: bytes
    status_scheduled_at: int


_ADVANCES = _rows_of(
    n=_UINT32,
    shard_id=_UINT64,
    row_at=_TIME,
    action_id=_TEXT,
    action_guid=_TEXT,
    id_hash=_UINT64,
    removes=_BOOL,
    to_at=_TIME,
    compares=_BOOL,
    seen_scheduled_at=_TIME,
    writes_status=_BOOL,
    status=_BYTES,
    status_scheduled_at=_TIME,
)


def advances(batch: Sequence[tuple[int, Advance]]) -> Typed:
    return [_advance_row(place, advance) for place, advance in batch], _ADVANCES


def _advance_row(place: int, advance: Advance) -> _AdvanceRow:
    row, to_us, seen_us, status, status_scheduled_at_us = advance
    return _AdvanceRow(
        place,
        row.shard_id,
        row.at_us,
        row.action_id,
        row.guid,
        id_hash(row.action_id),
        to_us is None,
        # A removal has no target; its own place, which is looked up anyway, stands for none.
        row.at_us if to_us is None else to_us,
        seen_us is not None,
        seen_us or 0,
        status is not None,
        status or b"",
        status_scheduled_at_us or 0,
    )


class _FreshLock(NamedTuple):
    shard_id: int
    locked: bool = False
    last_lock_guid: str = ""
    last_locked_by: str = ""
    last_processing_start_at: int = 0
    last_heartbeat_at: int = 0


_FRESH_LOCKS = _rows_of(
    shard_id=_UINT64,
    locked=_BOOL,
    last_lock_guid=_TEXT,
    last_locked_by=_TEXT,
    last_processing_start_at=_TIME,
    last_heartbeat_at=_TIME,
)


def fresh_locks(shards: int) -> Typed:
    return [_FreshLock(shard_id) for shard_id in range(shards)], _FRESH_LOCKS
