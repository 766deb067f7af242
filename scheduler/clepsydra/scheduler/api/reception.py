"""Requests that are on their way: the headers of the call have come, and its message has not.

gRPC holds as much of a message as has come, for as long as its caller likes. So requests on their way are bounded here:
by number, by size and by time, and those of one connection cannot keep out those of another. Where there are too many,
the connection with the most loses them.

The message of an ordinary call comes together with its headers. Such a call costs two changes of a dictionary.
"""

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import structlog

from clepsydra.core.validation.rules import FieldViolation
from clepsydra.scheduler.api.connections import Connections, Peer, peer_of
from clepsydra.scheduler.errors import DeadlinePassed, InvalidArgument, Overloaded, SchedulerError

_log = structlog.get_logger(__name__)

# How often requests on their way are looked at. One that is there at two looks is late.
_LOOK_INTERVAL_S = 0.02

# A connection that begins more calls than this in a second, of which the requests never come, is ended.
_WASTED_PER_S = 300

_WARNING_INTERVAL_S = 1.0

# What a call costs on its connection beside its message, roughly.
_HEADERS_BYTES = 200


class ReceptionBounds(NamedTuple):
    calls: int
    size: int
    time_s: float


class _Late(NamedTuple):
    task: "asyncio.Task[Any]"
    peer: str
    since_s: float


class _Unfinished:
    """What has come over one connection, and is not part of a finished message."""

    def __init__(self, received_bytes: int) -> None:
        self.received_bytes = received_bytes
        self.size = 0

    def has_received(self, received_bytes: int) -> None:
        self.size += received_bytes - self.received_bytes
        self.received_bytes = received_bytes

    def has_finished(self, size: int) -> None:
        self.size = max(0, self.size - size)


class Reception:
    def __init__(self, bounds: ReceptionBounds, connections: Connections) -> None:
        self._bounds = bounds
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        # Calls by their contexts. Those that were there at the last look are late.
        self._fresh: dict[Any, asyncio.Task[Any]] = {}
        self._late: dict[Any, _Late] = {}
        self._refusals: dict[Any, SchedulerError] = {}
        # Connections with late calls, by the peer as gRPC names it.
        self._unfinished: dict[str, _Unfinished] = {}
        self._wasted: Counter[str] = Counter()
        self._wasted_since_s = 0.0
        self._next_look: asyncio.TimerHandle | None = None
        self._next_warning_s = 0.0
        self._warnings_left_out = 0

    async def receive(self, context: Any) -> bytes:
        """The request of a call; raises a SchedulerError if it does not come as it should."""
        raw = await self.receive_next(context)
        if raw is None:
            raise InvalidArgument((FieldViolation("", "is missing: the call was ended without one"),))
        return raw

    async def receive_next(self, context: Any) -> bytes | None:
        """The next request of a call that may have several; None if there is none."""
        task = asyncio.current_task()
        assert task is not None, "gRPC runs each call in a task"
        if len(self._fresh) + len(self._late) >= self._bounds.calls:
            self._make_room()
        self._fresh[context] = task
        if self._next_look is None:
            self._next_look = self._loop.call_later(_LOOK_INTERVAL_S, self._look)
        try:
            raw = await context.read()
        except asyncio.CancelledError:
            refusal = self._refusals.pop(context, None)
            if refusal is None:
                self._was_wasted(context.peer(), 1)
                raise
            task.uncancel()
            raise refusal from None
        finally:
            if self._fresh.pop(context, None) is None:
                self._late.pop(context, None)
        if not isinstance(raw, bytes):
            # The caller has closed its side.
            return None
        if self._unfinished:
            unfinished = self._unfinished.get(context.peer())
            if unfinished is not None:
                unfinished.has_finished(len(raw) + _HEADERS_BYTES)
        return raw

    def _look(self) -> None:
        now_s = self._loop.time()
        self._next_look = None
        self._note_late(now_s)
        for context, late in list(self._late.items()):
            if late.since_s + self._bounds.time_s > now_s:
                break
            self._refuse(context, DeadlinePassed(f"the request did not come within {self._bounds.time_s:g} s"))
        self._measure()
        if now_s > self._wasted_since_s + 1:
            self._wasted.clear()
        if self._fresh or self._late or self._wasted:
            self._next_look = self._loop.call_later(_LOOK_INTERVAL_S, self._look)

    def _note_late(self, now_s: float) -> None:
        for context, task in self._fresh.items():
            self._late[context] = _Late(task, context.peer(), now_s)
        self._fresh.clear()

    def _measure(self) -> None:
        """Add up what was received of late requests; above the limit, refuse those of the connection with the most."""
        unfinished: dict[str, _Unfinished] = {}
        for name in {late.peer for late in self._late.values()}:
            peer = peer_of(name)
            received_bytes = None if peer is None else self._connections.received_bytes(peer)
            if received_bytes is not None:
                unfinished[name] = self._unfinished.get(name) or _Unfinished(received_bytes)
                unfinished[name].has_received(received_bytes)
        self._unfinished = unfinished
        while sum(each.size for each in unfinished.values()) > self._bounds.size:
            largest = max(unfinished, key=lambda name: unfinished[name].size)
            del unfinished[largest]
            self._refuse_all_of(largest, "too much of unfinished requests has come")

    def _make_room(self) -> None:
        """Refuse what the connection with the most late calls has on its way."""
        self._note_late(self._loop.time())
        counts = Counter(late.peer for late in self._late.values() if late.task.cancelling() == 0)
        if counts:
            [(peer, _)] = counts.most_common(1)
            self._refuse_all_of(peer, "too many unfinished requests are on their way")

    def _refuse_all_of(self, peer: str, reason: str) -> None:
        contexts = [context for context, late in self._late.items() if late.peer == peer]
        self._warn("unfinished requests are refused", reason=reason, peer=peer, calls=len(contexts))
        for context in contexts:
            self._refuse(context, Overloaded(f"{reason}: send them one after the other, or a little later"))
        self._was_wasted(peer, len(contexts))

    def _refuse(self, context: Any, error: SchedulerError) -> None:
        if context not in self._refusals:
            self._refusals[context] = error
            self._late[context].task.cancel()

    def _was_wasted(self, name: str, calls: int) -> None:
        """Count calls that were begun for nothing. A connection with a flood of them is ended."""
        if not self._wasted:
            self._wasted_since_s = self._loop.time()
        self._wasted[name] += calls
        peer: Peer | None
        if self._wasted[name] > _WASTED_PER_S and (peer := peer_of(name)) is not None:
            del self._wasted[name]
            if self._connections.end(peer):
                self._warn("a connection begins calls without finishing them, and is ended", peer=name)

    def _warn(self, event: str, **values: Any) -> None:
        """Log at most one warning a second: a flood of calls must not become a flood of lines."""
        now_s = self._loop.time()
        if now_s < self._next_warning_s:
            self._warnings_left_out += 1
            return
        if self._warnings_left_out:
            values["warnings_left_out"] = self._warnings_left_out
        self._warnings_left_out, self._next_warning_s = 0, now_s + _WARNING_INTERVAL_S
        _log.warning(event, **values)
