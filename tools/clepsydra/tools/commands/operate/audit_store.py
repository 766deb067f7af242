"""Audits a store, and repairs it: slice by slice, with pauses, so that it does not slow down servers on the store."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any, NamedTuple

import click

from clepsydra.core.ids import Ids
from clepsydra.core.times import seconds
from clepsydra.scheduler.codec import decode
from clepsydra.scheduler.errors import Damaged
from clepsydra.store.errors import StoreError
from clepsydra.store.port import Store
from clepsydra.store.repair import Repaired, repair
from clepsydra.tools.exits import Exit
from clepsydra.tools.format.audit_report import AuditReport, format_repaired
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.tools.process.server import stop_signals
from clepsydra.tools.stores import readable_store, writable_store

_PAGE_SIZE = 1000


class Pace(NamedTuple):
    """The speed of a repair: how many actions or rows are in a slice, and how long the pause after each slice is."""

    slice_size: int
    pause_us: int


class RepairReport(NamedTuple):
    repaired: Repaired
    # The signal that stopped the repair before its end.
    stopped_by: signal.Signals | None
    # The audit after the repair, unless a signal stopped it.
    after: AuditReport | None

    def lines(self) -> Iterator[str]:
        yield format_repaired(self.repaired)
        if self.after is None:
            yield "The repair was stopped; the same command continues it."
        else:
            yield from self.after.lines()

    def as_dict(self) -> dict[str, Any]:
        return {"repaired": self.repaired._asdict(), "after": self.after and self.after.as_dict()}

    @property
    def exit_code(self) -> int:
        if self.stopped_by is not None:
            return 128 + self.stopped_by
        return Exit.OK if self.after is not None and self.after.is_clean else Exit.NEGATIVE


async def audit_store(url: str, limit: int) -> AuditReport:
    """Audit a store. The report names at most `limit` violations of each kind."""
    async with readable_store(url) as store:
        return await _audit(store, limit)


async def repair_store(url: str, limit: int, pace: Pace) -> RepairReport:
    """Repair a store, and audit it again."""
    async with writable_store(url) as store:
        repaired, stopped_by = await _repair(store, pace)
        return RepairReport(repaired, stopped_by, None if stopped_by else await _audit(store, limit))


async def _audit(store: Store, limit: int) -> AuditReport:
    audit = await store.audit(limit)
    return AuditReport(audit, *await _find_undecodable(store, limit))


async def _find_undecodable(store: Store, limit: int) -> tuple[int, list[str]]:
    """Decode every action, page by page. Returns how many cannot be decoded, and the ids of the first ones.

    This needs no snapshot: an action that is added or removed meanwhile does not matter.
    """
    progress = ProgressCounter("actions read")
    undecodable = read = 0
    ids: list[str] = []
    after_id: str | None = None
    while page := await store.list_actions(after_id, _PAGE_SIZE):
        for action in page:
            try:
                decode(action)
            except Damaged:
                undecodable += 1
                if len(ids) < limit:
                    ids.append(action.action_id)
        read += len(page)
        progress.show(read)
        after_id = page[-1].action_id
    progress.clear()
    return undecodable, ids


async def _repair(store: Store, pace: Pace) -> tuple[Repaired, signal.Signals | None]:
    """Returns what was done, and the signal that stopped the repair before its end, if any."""
    stopping: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    progress = ProgressCounter("actions and rows repaired")
    total = Repaired()
    with stop_signals(stopping.set_result):
        try:
            async with aclosing(repair(store, Ids.from_system(), pace.slice_size)) as slices:
                async for done in slices:
                    total = total.plus(done)
                    progress.show(total.actions + total.rows)
                    await asyncio.wait([stopping], timeout=seconds(pace.pause_us))
                    if stopping.done():
                        return total, stopping.result()
        except StoreError:
            click.echo(f"Before the failure: {format_repaired(total)}", err=True)
            raise
        finally:
            progress.clear()
    return total, None
