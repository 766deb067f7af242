"""The promises, checked at every store call of a small world. They say nothing of how the guard works inside."""

from typing import NamedTuple

from clepsydra.core.action.events import Decision
from clepsydra.core.action.state_machine import KEPT, LIVE
from clepsydra.core.plan import Begin
from clepsydra.core.times import us_of
from clepsydra.store.port import Action, AdvanceOutcome, PutOutcome, PutResult
from clepsydra.v1.action_pb2 import Spec, Status
from tests.interleaving.state import Books, Tables, Write


class Broken(Exception):
    """A promise was broken."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        # The call that broke it.
        self.by: Write | None = None


class Returned(Exception):
    """The creation of an action that was never changed was repeated after its record had gone.

    Retention 0 gives up the memory that would tell, so such a life begins again; nothing is explored beyond that.
    """


class Seen(NamedTuple):
    """What the store held, for one action, before a call."""

    action: Action | None
    row_was_there: bool


def check_rows(tables: Tables) -> None:
    """In every committed state, each action has exactly one row with its current guid."""
    live = [(kept.key[3], kept.key[4]) for kept in tables.rows]
    for action in tables.actions:
        count = live.count((action.action_id, action.guid))
        if count != 1:
            raise Broken("each action has exactly one live row", f"{action.action_id} has {count}")


def after_put(books: Books, write: Write, seen: Seen, result: PutResult) -> Books:
    """What a put did, if it did anything."""
    put = write.put
    assert put is not None
    if result.outcome is not PutOutcome.DONE or put.shard_id is None:
        return books
    before, guid = seen.action, put.action.guid
    if guid.startswith("f"):
        raise Broken("a life in between is never current", guid)
    if before is not None and before.guid == guid:
        return books
    last = dict(books.last)
    if guid in books.guids:
        if before is None and last[put.action.action_id] == guid:
            raise Returned
        raise Broken("a guid is never current twice", f"{put.action.action_id} became {guid} again")
    last[put.action.action_id] = guid
    _check_cancelled(books, guid, before)
    # Whatever was in flight is superseded.
    still_open = tuple(entry for entry in books.open if before is None or entry[0] != before.guid)
    return books._replace(guids=books.guids | {guid}, open=still_open, last=tuple(sorted(last.items())))


def _check_cancelled(books: Books, guid: str, before: Action | None) -> None:
    """A cancellation ends the occurrence that its call saw first, or nothing."""
    seen = dict(books.cancelled).get(guid)
    if seen is None:
        return
    ended = None if before is None else (before.guid, us_of(Status.FromString(before.status).occurrence_time))
    if ended != seen:
        raise Broken("a cancellation ends the occurrence that it saw", f"it saw {seen} and ended {ended}")


def after_decision(books: Books, begin: Begin, seen: Seen, outcome: AdvanceOutcome) -> Books:
    """What the decision about a due row did: a begin, an interruption, an expiry, a purge."""
    action, guid = seen.action, begin.advance.row.guid
    if outcome is not AdvanceOutcome.DONE or not seen.row_was_there or action is None:
        return books
    if action.guid != guid:
        raise Broken("only a current life is advanced", f"{action.action_id} by a row of {guid}")
    status = Status.FromString(action.status)
    if begin.decision is Decision.PURGE:
        if status.state not in KEPT:
            raise Broken("an action is never lost", f"{action.action_id} was purged while it was alive")
        return books
    if begin.decision is Decision.INTERRUPT:
        books = _ended(books, guid, None)
    if begin.attempt is None:
        return books
    return _begun(books, guid, begin.attempt.id, status)


def _begun(books: Books, guid: str, attempt_id: str, status: Status) -> Books:
    if status.state not in LIVE:
        raise Broken("only what waits is begun", attempt_id)
    if guid in books.stopped:
        raise Broken("nothing begins after an acknowledged delete or pause", attempt_id)
    if attempt_id in books.begun:
        raise Broken("an attempt begins once", attempt_id)
    if any(life == guid for life, _ in books.open):
        raise Broken("an attempt ends before the next begins", attempt_id)
    return books._replace(begun=books.begun | {attempt_id}, open=tuple(sorted((*books.open, (guid, attempt_id)))))


def _ended(books: Books, guid: str, attempt_id: str | None) -> Books:
    """The attempt in flight has ended; where a name is given, it must be that one."""
    found = dict(books.open).get(guid)
    if found is None or attempt_id not in (None, found):
        raise Broken("every begun attempt ends as exactly one thing", f"{attempt_id or guid} while {found} is open")
    return books._replace(open=tuple(entry for entry in books.open if entry[0] != guid))


def after_start(books: Books, attempt_id: str) -> Books:
    """A worker was told that it has begun an attempt, and executes it."""
    if attempt_id in books.started:
        raise Broken("an attempt is executed once", attempt_id)
    return books._replace(started=books.started | {attempt_id})


def after_finish(
    books: Books, write: Write, attempt_id: str, seen: Seen, outcome: AdvanceOutcome, *, is_first: bool
) -> Books:
    """What became of an outcome."""
    assert write.advance is not None
    action, row = seen.action, write.advance.row
    if outcome is AdvanceOutcome.DONE and seen.row_was_there and action is not None:
        if action.guid != row.guid:
            raise Broken("only a current life is advanced", f"{action.action_id} by an outcome of {row.guid}")
        if write.advance.to_us is None and _is_to_be_kept(action):
            raise Broken("an action is never lost", f"{action.action_id} was removed, though it is to be kept")
        return _ended(books, row.guid, attempt_id)
    if is_first and outcome is not AdvanceOutcome.DONE and (row.guid, attempt_id) in books.open:
        raise Broken("an outcome is refused only where another took its place", attempt_id)
    return books


def after_extension(books: Books, write: Write, attempt_id: str, seen: Seen, outcome: AdvanceOutcome) -> Books:
    assert write.advance is not None
    if outcome is AdvanceOutcome.DONE and seen.row_was_there:
        guid = write.advance.row.guid
        if dict(books.open).get(guid) != attempt_id:
            raise Broken("a lease is extended only for an attempt in flight", attempt_id)
    return books


def _is_to_be_kept(action: Action) -> bool:
    retention = Spec.FromString(action.spec).retention
    return bool(retention.after_success.ToMicroseconds() and retention.after_failure.ToMicroseconds())
