"""Every call of the port on the sample installation, with the name of the text that it sends.

Each function builds its call once, so that a test can repeat it exactly.
"""

from collections.abc import Callable
from typing import Any

from clepsydra.core.times import END_OF_TIME_US
from clepsydra.store.port import Advance, Lock, Mark, Store
from tests.conformance.worlds import EVERYTHING, begin, finish
from tests.ydb.sample_installation import Call, SampleInstallation, acquire_lock

Make = Callable[[SampleInstallation], Call]


def _create(sample: SampleInstallation) -> Call:
    put = sample.world.create("new", shard_id=1)
    return lambda store: store.put([put])


def _change(sample: SampleInstallation) -> Call:
    put = sample.world.change(sample.actions["waits"], shard_id=1)
    return lambda store: store.put([put])


def _relabel(sample: SampleInstallation) -> Call:
    put = sample.world.change_settings(sample.actions["in flight"])
    return lambda store: store.put([put])


def _advance(*advances: Advance, mark: Mark) -> Call:
    return lambda store: store.advance(advances, mark)


def _begin(sample: SampleInstallation) -> Call:
    return _advance(begin(sample.rows["waits"]), mark=sample.world.mark())


def _begin_from_incoming(sample: SampleInstallation) -> Call:
    return _advance(begin(sample.rows["came in"]), mark=sample.world.mark())


def _finish(sample: SampleInstallation) -> Call:
    ends = finish(sample.rows["in flight"], sample.actions["in flight"], sample.world.at(900))
    return _advance(ends, begin(sample.rows["waits"]), mark=sample.world.mark())


def _remove(sample: SampleInstallation) -> Call:
    removal = Advance(sample.rows["ends"], None, sample.actions["ends"].scheduled_at_us)
    return _advance(removal, mark=sample.world.mark())


def _advance_stale(sample: SampleInstallation) -> Call:
    return _advance(begin(sample.rows["changed"]), mark=sample.world.mark())


def _migrate(sample: SampleInstallation) -> Call:
    mark = sample.world.mark()
    return lambda store: store.migrate([sample.rows["came in"]], mark)


def _drop(sample: SampleInstallation) -> Call:
    return lambda store: store.drop([sample.rows["changed"]])


def _acquire(sample: SampleInstallation) -> Call:
    return lambda store: acquire_lock(store, "wanted", sample.world.now_us)


def _heartbeat(sample: SampleInstallation) -> Call:
    async def beat(store: Store) -> Any:
        return (await store.heartbeat([sample.lock, Lock(1, "never")], sample.world.at(5), 0))[:2]

    return beat


def _release(sample: SampleInstallation) -> Call:
    return lambda store: store.release([sample.lock], sample.world.at(5))


def _due(sample: SampleInstallation) -> Call:
    return lambda store: store.due(
        0, incoming_from_us=0, incoming_limit=50, from_us=0, until_us=END_OF_TIME_US, limit=50
    )


def _soon(sample: SampleInstallation) -> Call:
    until_us = sample.world.at(1000)
    return lambda store: store.soon(0, incoming_from_us=0, until_us=until_us, limit=EVERYTHING)


def _list(sample: SampleInstallation) -> Call:
    async def list_sorted(store: Store) -> Any:
        # Each store has an order of its own.
        return sorted(await store.list_actions(None, 50))

    return list_sorted


def _get(sample: SampleInstallation) -> Call:
    return lambda store: store.get(["waits", "nothing", "came in"])


def _stale(sample: SampleInstallation) -> Call:
    return lambda store: store.stale(0, None, 0, 50)


def _locks(sample: SampleInstallation) -> Call:
    return lambda store: store.locks()


def _stats(sample: SampleInstallation) -> Call:
    return lambda store: store.stats(sample.world.now_us)


def _audit(sample: SampleInstallation) -> Call:
    return lambda store: store.audit(10)


def _now(sample: SampleInstallation) -> Call:
    async def is_later(store: Store) -> Any:
        return await store.now() >= sample.world.now_us

    return is_later


WRITES: dict[str, tuple[Make, str]] = {
    "create": (_create, "put"),
    "change": (_change, "put"),
    "relabel": (_relabel, "put"),
    "begin": (_begin, "advance_in_processing"),
    "begin from incoming": (_begin_from_incoming, "advance_from_incoming"),
    "finish": (_finish, "advance_in_processing"),
    "remove": (_remove, "advance_in_processing"),
    "advance stale": (_advance_stale, "advance_in_processing"),
    "migrate": (_migrate, "migrate"),
    "drop": (_drop, "drop"),
    "acquire": (_acquire, "acquire"),
    "heartbeat": (_heartbeat, "heartbeat"),
    "release": (_release, "release"),
}
READS: dict[str, tuple[Make, str]] = {
    "get": (_get, "get"),
    "list": (_list, "list_actions"),
    "due": (_due, "due"),
    "soon": (_soon, "soon"),
    "stale": (_stale, "stale"),
    "acquire's read": (_acquire, "free_locks"),
    "heartbeat's read": (_heartbeat, "free_locks"),
    "locks": (_locks, "locks"),
    "stats": (_stats, "stats"),
    "audit's actions": (_audit, "audit_actions"),
    "audit's incoming": (_audit, "audit_incoming"),
    "audit's processing": (_audit, "audit_processing"),
    "now": (_now, "now"),
}
