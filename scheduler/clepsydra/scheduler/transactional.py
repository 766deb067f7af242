"""Creates an action inside an application's own transaction, so that both are committed or neither is.

For an application that keeps its data in the same PostgreSQL database, or in the same SQLite file, as an installation.
Validation, defaults and idempotency are those of the service's CreateAction.
"""

from typing import Any

from clepsydra.core.action.creation import action_id_of
from clepsydra.core.clock import Clock, SystemClock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.api.responses import to_message
from clepsydra.scheduler.errors import SchedulerError
from clepsydra.scheduler.writes.call import Call
from clepsydra.scheduler.writes.lives import Stamp
from clepsydra.scheduler.writes.mutations import Create
from clepsydra.store.own_transaction import Place
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

    `schema` is the installation's. Workers notice the action within a second after the commit; with `notify` at once,
    but then PostgreSQL commits such transactions one after the other.
    """
    from clepsydra.store.postgres.own_transaction import OwnTransaction

    request = CreateActionRequest(action=action, request_id=request_id)
    transaction = OwnTransaction(connection, schema)
    place = await transaction.look(action_id_of(request, ""))
    call = _planned_call(request, place, ids or Ids.from_system())
    while call.outcome is None:
        call.settle(await transaction.put(_put_of(call)), place.now_us)
    if notify and call.put is not None and call.put.shard_id is not None:
        await transaction.notify(call.put.shard_id)
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
    from clepsydra.store.sqlite.own_transaction import OwnTransaction

    request = CreateActionRequest(action=action, request_id=request_id)
    transaction = OwnTransaction(connection, clock or SystemClock())
    place = transaction.look(action_id_of(request, ""))
    call = _planned_call(request, place, ids or Ids.from_system())
    while call.outcome is None:
        call.settle(transaction.put(_put_of(call)), place.now_us)
    return _result_of(call)


def _planned_call(request: CreateActionRequest, place: Place, ids: Ids) -> Call:
    action_id = action_id_of(request, ids.action_id(place.now_us))
    stamp = Stamp(ids.guid(), ids.shard(place.shards), place.now_us)
    call = Call(Create(request, action_id, stamp))
    if call.outcome is None:
        call.plan(place.current)
    return call


def _put_of(call: Call) -> Put:
    assert call.put is not None, "a call without an outcome has something to put"
    return call.put


def _result_of(call: Call) -> ScheduledAction:
    outcome = call.settled()
    if isinstance(outcome, SchedulerError):
        raise outcome
    return to_message(outcome)
