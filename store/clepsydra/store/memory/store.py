"""The specification of the port, in the plainest code: dictionaries, and nothing clever.

No method awaits between its first read and its last write, so each is one transaction by construction.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clepsydra.core.clock import Clock
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.state_bytes import is_live, state_of
from clepsydra.store.batch import check_named_once
from clepsydra.store.lock_age import fresh_until_us
from clepsydra.store.port import (
    Acquired,
    Action,
    Advance,
    AdvanceOutcome,
    Audit,
    Due,
    Heartbeat,
    Inspected,
    Inspection,
    LiveRow,
    Load,
    Lock,
    LockInfo,
    LockRow,
    Mark,
    Page,
    Put,
    PutOutcome,
    PutResult,
    Queue,
    Row,
    StalePage,
    Stats,
    Version,
    Violation,
)
from clepsydra.store.wakeup import Wakeups
from clepsydra.v1 import action_pb2

Key = tuple[Queue, int, int, str, str]


@dataclass
class ShardLock:
    locked: bool = False
    guid: str = ""
    locked_by: str = ""
    processing_start_at_us: int = 0
    heartbeat_at_us: int = 0

    def is_free(self, now_us: int, stale_before_us: int) -> bool:
        is_fresh = stale_before_us <= self.heartbeat_at_us <= fresh_until_us(now_us, stale_before_us)
        return not self.locked or not is_fresh


@dataclass
class QueueRow:
    """What a queue keeps beside the key."""

    scheduled_at_us: int
    added_to_incoming_queue_at_us: int
    moved_by: Mark | None = None
    rescheduled_by: Mark | None = None


class MemoryStore:
    def __init__(self, shards: int, clock: Clock) -> None:
        self._clock = clock
        self._wakeups = Wakeups(shards)
        self.actions: dict[str, Action] = {}
        self.rows: dict[Key, QueueRow] = {}
        self.shard_locks = {shard_id: ShardLock() for shard_id in range(shards)}

    @property
    def shards(self) -> int:
        return len(self.shard_locks)

    async def close(self) -> None:
        self._wakeups.wake_all()

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        check_named_once(put.action.action_id for put in puts)
        return [self._put(put) for put in puts]

    def _put(self, put: Put) -> PutResult:
        new, current = put.action, self.actions.get(put.action.action_id)
        if current is not None and _is_done(put, current):
            return PutResult(PutOutcome.DONE)
        if put.created_at_us < self._clock.now_us() - CALL_RETRY_US:
            return PutResult(PutOutcome.TOO_LATE)
        if put.shard_id is None:
            if current is None or put.seen is None or current.meta != put.seen.meta:
                return PutResult(PutOutcome.CONFLICT, current)
            self.actions[new.action_id] = current._replace(meta=new.meta, spec=new.spec)
            return PutResult(PutOutcome.DONE)
        if _version(current) != _version(put.seen):
            return PutResult(PutOutcome.CONFLICT, current)
        self.actions[new.action_id] = new
        key = (Queue.INCOMING, put.shard_id, put.created_at_us, new.action_id, new.guid)
        self.rows[key] = QueueRow(new.scheduled_at_us, put.created_at_us)
        self._wakeups.wake(put.shard_id)
        return PutResult(PutOutcome.DONE)

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        return [self.actions.get(action_id) for action_id in action_ids]

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        ids = sorted(action_id for action_id in self.actions if after_id is None or action_id > after_id)
        return [self.actions[action_id] for action_id in ids[:limit]]

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        return self._inspection(
            action_ids, lambda _, row: row.rescheduled_at_us is not None and after_us < row.at_us <= until_us
        )

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        return self._inspection(
            [action_id],
            lambda action, row: (
                row.queue is Queue.INCOMING
                or action.scheduled_at_us <= row.at_us <= max(action.scheduled_at_us, until_us)
            ),
        )

    def _inspection(self, action_ids: Sequence[str], is_found: Callable[[Action, Row], bool]) -> Inspection:
        found: dict[str, LiveRow] = {}
        for row in self._all_rows():
            action = self._live_action(row)
            if action is not None and row.shard_id in self.shard_locks and is_found(action, row):
                found[row.action_id] = self._live_row(row)
        actions = [Inspected(self.actions.get(action_id), found.get(action_id)) for action_id in action_ids]
        locks = [
            LockRow(shard_id, lock.locked, lock.guid, lock.locked_by, lock.processing_start_at_us, lock.heartbeat_at_us)
            for shard_id, lock in self.shard_locks.items()
        ]
        return Inspection(actions, locks, self._clock.now_us())

    def _live_row(self, row: Row) -> LiveRow:
        kept = self.rows[_key(row)]
        moved_by, rescheduled_by = kept.moved_by, kept.rescheduled_by
        return LiveRow(
            row,
            kept.added_to_incoming_queue_at_us,
            moved_by.sync_guid if moved_by else None,
            moved_by.at_us if moved_by else None,
            rescheduled_by.sync_guid if rescheduled_by else None,
        )

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        found = (self.actions.get(action_id) for action_id in action_ids)
        return [None if action is None else Version(action.guid, action.scheduled_at_us) for action in found]

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        for shard_id, lock in self.shard_locks.items():
            if lock.locked and lock.guid == lock_guid:
                return Acquired(Lock(shard_id, lock_guid), self._clock.now_us())
        free = [
            (lock.processing_start_at_us, shard_id)
            for shard_id, lock in self.shard_locks.items()
            if lock.is_free(now_us, stale_before_us)
        ]
        if not free:
            return None
        shard_id = min(free)[1]
        before = self.shard_locks[shard_id]
        self.shard_locks[shard_id] = ShardLock(True, lock_guid, worker, now_us, now_us)
        taken = (before.locked_by, before.guid) if before.locked else ("", "")
        return Acquired(Lock(shard_id, lock_guid), self._clock.now_us(), *taken)

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        lost = []
        for lock in locks:
            held = self._held(lock)
            if held is None:
                lost.append(lock.shard_id)
            elif held.heartbeat_at_us > fresh_until_us(now_us, stale_before_us):
                held.heartbeat_at_us = now_us
            else:
                held.heartbeat_at_us = max(held.heartbeat_at_us, now_us)
        waiting = sum(lock.is_free(now_us, stale_before_us) for lock in self.shard_locks.values())
        return Heartbeat(frozenset(lost), waiting, self._clock.now_us())

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        for lock in locks:
            held = self._held(lock)
            if held is not None:
                held.locked = False
                held.heartbeat_at_us = max(held.heartbeat_at_us, now_us)

    def _held(self, lock: Lock) -> ShardLock | None:
        held = self.shard_locks[lock.shard_id]
        return held if held.locked and held.guid == lock.guid else None

    async def due(
        self,
        shard_id: int,
        *,
        incoming_from_us: int,
        incoming_limit: int,
        from_us: int,
        until_us: int,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> Page:
        incoming = [row for row in self._shard(Queue.INCOMING, shard_id) if row.at_us >= incoming_from_us]
        due = [
            row
            for row in self._shard(Queue.PROCESSING, shard_id)
            if (row.at_us, row.action_id, row.guid) > (from_us, *after) and row.at_us <= until_us
        ]
        return Page(
            [Due(row, self._live_action(row)) for row in incoming[:incoming_limit]],
            [Due(row, self._live_action(row)) for row in due[:limit]],
        )

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        incoming = [row for row in self._shard(Queue.INCOMING, shard_id) if row.at_us >= incoming_from_us]
        return [row for row in incoming if row.scheduled_at_us <= until_us][:limit]

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        moved = 0
        for row in rows:
            incoming = self.rows.pop(_key(row), None) if row.queue is Queue.INCOMING else None
            if incoming is not None:
                key = (Queue.PROCESSING, row.shard_id, incoming.scheduled_at_us, row.action_id, row.guid)
                self.rows[key] = QueueRow(incoming.scheduled_at_us, row.at_us, moved_by=mark)
                moved += 1
        return moved

    async def drop(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.rows.pop(_key(row), None)

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        check_named_once(advance.row.action_id for advance in advances)
        return [self._advance(advance, mark) for advance in advances]

    def _advance(self, advance: Advance, mark: Mark) -> AdvanceOutcome:
        row, to_us = advance.row, advance.to_us
        existing = self.rows.get(_key(row))
        target = None if to_us is None else (Queue.PROCESSING, row.shard_id, to_us, row.action_id, row.guid)
        if existing is None:
            was_done = target is not None and target in self.rows and self.rows[target].rescheduled_by == mark
            return AdvanceOutcome.DONE if was_done else AdvanceOutcome.GONE
        action = self.actions.get(row.action_id)
        if action is None or action.guid != row.guid:
            del self.rows[_key(row)]
            return AdvanceOutcome.STALE
        if advance.seen_scheduled_at_us not in (None, action.scheduled_at_us):
            return AdvanceOutcome.GONE
        del self.rows[_key(row)]
        if target is None:
            del self.actions[row.action_id]
            return AdvanceOutcome.DONE
        existing.scheduled_at_us = target[2]
        existing.rescheduled_by = mark
        self.rows[target] = existing
        if advance.status is not None:
            assert advance.status_scheduled_at_us is not None
            self.actions[row.action_id] = action._replace(
                status=advance.status, scheduled_at_us=advance.status_scheduled_at_us
            )
        return AdvanceOutcome.DONE

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        rows = [
            row
            for row in self._shard(Queue.PROCESSING, shard_id)
            if row.at_us >= from_us and (after is None or (row.at_us, row.action_id, row.guid) > after)
        ]
        page = rows[:limit]
        last = page[-1] if len(rows) > limit else None
        return StalePage(
            [row for row in page if self._live_action(row) is None],
            None if last is None else (last.at_us, last.action_id, last.guid),
            len(page),
        )

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await self._wakeups.wait(shard_id, timeout_s)

    async def now(self) -> int:
        return self._clock.now_us()

    async def check_writable(self) -> None:
        """Memory always is."""

    async def locks(self) -> list[LockInfo]:
        return [self._lock_info(shard_id) for shard_id in self.shard_locks]

    def _lock_info(self, shard_id: int) -> LockInfo:
        lock = self.shard_locks[shard_id]
        incoming = self._shard(Queue.INCOMING, shard_id)
        processing = self._shard(Queue.PROCESSING, shard_id)
        return LockInfo(
            shard_id,
            lock.locked,
            lock.guid,
            lock.locked_by,
            lock.processing_start_at_us,
            lock.heartbeat_at_us,
            len(incoming),
            len(processing),
            min((row.scheduled_at_us for row in incoming + processing), default=None),
            self._load(incoming + processing),
        )

    def _load(self, rows: Sequence[Row]) -> Load:
        live = [(row, action) for row in rows if (action := self._live_action(row)) is not None]
        planned = [(row, action) for row, action in live if is_live(action.status)]
        waiting = [row.scheduled_at_us for row, action in planned if row.scheduled_at_us == action.scheduled_at_us]
        return Load(
            waiting=len(waiting),
            running=len(planned) - len(waiting),
            kept=len(live) - len(planned),
            next_us=min(waiting, default=None),
        )

    async def stats(self, now_us: int) -> Stats:
        rows = self._all_rows()
        existing = [row for row in rows if row.shard_id in self.shard_locks]
        due = [row for row in existing if row.scheduled_at_us <= now_us]
        states = Counter(state_of(action.status) for action in self.actions.values())
        return Stats(
            actions=len(self.actions),
            incoming_rows=sum(row.queue is Queue.INCOMING for row in rows),
            processing_rows=sum(row.queue is Queue.PROCESSING for row in rows),
            due_rows=sum(row.scheduled_at_us <= now_us for row in rows),
            earliest_us=min((row.scheduled_at_us for row in rows), default=None),
            shards=self.shards,
            locked_shards=sum(lock.locked for lock in self.shard_locks.values()),
            load=self._load(existing),
            due_waiting=self._load(due).waiting,
            states=tuple(sorted(states.items())),
        )

    async def audit(self, limit: int) -> Audit:
        live: dict[str, list[Row]] = {action_id: [] for action_id in self.actions}
        stale = 0
        for row in self._all_rows():
            if self._live_action(row) is None or row.shard_id not in self.shard_locks:
                stale += 1
            else:
                live[row.action_id].append(row)
        broken = [
            Violation(action_id, self.actions[action_id].guid, rows)
            for action_id, rows in sorted(live.items())
            if len(rows) != 1
        ]
        return Audit(
            actions=len(self.actions),
            live_rows=sum(len(rows) for rows in live.values()),
            stale_rows=stale,
            without_row=sum(not violation.rows for violation in broken),
            with_several_rows=sum(len(violation.rows) > 1 for violation in broken),
            violations=broken[:limit],
            stray_shards=tuple(sorted({row.shard_id for row in self._all_rows()} - self.shard_locks.keys())),
            deleted=sum(state_of(action.status) == action_pb2.DELETED for action in self.actions.values()),
        )

    def _shard(self, queue: Queue, shard_id: int) -> list[Row]:
        return sorted(
            (row for row in self._all_rows() if row.queue is queue and row.shard_id == shard_id),
            key=lambda row: (row.at_us, row.action_id, row.guid),
        )

    def _all_rows(self) -> list[Row]:
        return [
            Row(*key, row.scheduled_at_us, row.rescheduled_by.at_us if row.rescheduled_by else None)
            for key, row in self.rows.items()
        ]

    def _live_action(self, row: Row) -> Action | None:
        action = self.actions.get(row.action_id)
        return action if action is not None and action.guid == row.guid else None


def _key(row: Row) -> Key:
    return (row.queue, row.shard_id, row.at_us, row.action_id, row.guid)


def _version(action: Action | None) -> tuple[str, int, bytes] | None:
    return None if action is None else (action.guid, action.scheduled_at_us, action.meta)


def _is_done(put: Put, current: Action) -> bool:
    """A repeated put finds its own guid current, or its own meta and spec where the life stays the same.

    Two calls of one moment can come to the same meta with different specs.
    """
    if put.shard_id is None:
        return (current.meta, current.spec) == (put.action.meta, put.action.spec)
    return current.guid == put.action.guid
