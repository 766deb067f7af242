"""Creates an action inside a transaction of the application's own, so that both are committed or neither is.

For an application that keeps its data in the same PostgreSQL database, or in the same SQLite file, as an installation.
What is checked, filled in and recognised as a replay is what the service's CreateAction does.
"""

from typing import Any

from clepsydra.core.clock import Clock, SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.validation import violations_of
from clepsydra.scheduler.answers import shown
from clepsydra.scheduler.changes import Create, Stamp, known_id
from clepsydra.scheduler.errors import InvalidArgument, SchedulerError
from clepsydra.scheduler.fate import Call
from clepsydra.store.creation import Place
from clepsydra.store.port import Put
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import CreateActionRequest


async def create_in_postgres(
    connection: Any,
    action: ScheduledAction,
    *,
    request_id: str = "",
    schema: str = "clepsydra",
    notify: bool = False,
    ids: Ids | None = None,
) -> ScheduledAction:
    """Create an action through an asyncpg connection that is within a transaction. Returns it as it was accepted.

    `schema` is the installation's. With `notify`, workers look at once when the transaction is committed, and not at
    their next look, within a second; PostgreSQL then lets one such transaction after the other commit.
    """
    from clepsydra.store.postgres.creation import Within

    request = _checked(action, request_id)
    within = Within(connection, schema)
    place = await within.look(known_id(request))
    call = _call(request, place, ids or Ids.from_system())
    while call.outcome is None:
        call.hear(await within.put(_put_of(call)), place.now_us)
    if notify and call.put is not None and call.put.shard_id is not None:
        await within.notify(call.put.shard_id)
    return _result_of(call)


def create_in_sqlite(
    connection: Any,
    action: ScheduledAction,
    *,
    request_id: str = "",
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> ScheduledAction:
    """Create an action through a connection of sqlite3 or apsw that is within a transaction. Returns it as accepted."""
    from clepsydra.store.sqlite.creation import Within

    request = _checked(action, request_id)
    within = Within(connection, clock or SystemClock())
    place = within.look(known_id(request))
    call = _call(request, place, ids or Ids.from_system())
    while call.outcome is None:
        call.hear(within.put(_put_of(call)), place.now_us)
    return _result_of(call)


def _checked(action: ScheduledAction, request_id: str) -> CreateActionRequest:
    request = CreateActionRequest(action=action, request_id=request_id)
    violations = violations_of(request)
    if violations:
        raise InvalidArgument(violations)
    return request


def _call(request: CreateActionRequest, place: Place, ids: Ids) -> Call:
    action_id = known_id(request) or ids.action_id(place.now_us)
    stamp = Stamp(ids.guid(), ids.shard(place.shards), place.now_us)
    call = Call(Create(request, action_id, stamp), None)
    call.propose(place.current)
    return call


def _put_of(call: Call) -> Put:
    assert call.put is not None, "a call on its way has something to put"
    return call.put


def _result_of(call: Call) -> ScheduledAction:
    assert call.outcome is not None
    if isinstance(call.outcome, SchedulerError):
        raise call.outcome
    return shown(call.outcome)
