"""What attempts need to run, and how much of it a worker has.

An attempt begins only when everything that it needs is free: a thread, a connection, a place. What the calls of one
handler, or to one host, need is one `Needs`: a few resources, each with a limit. Those calls are alike, so a batch of
attempts is counted by its needs and not looked at one by one.

A resource of one handler or host is a part of a shared one, and may not take all of it: it takes more only while it has
less than `_PART` times what is still free of the shared one. So one that takes all it can get leaves a part for others,
the next one leaves a part of that part, and so on. (Network switches share out their buffers in this way: dynamic
thresholds, Choudhury and Hahne, 1998.)
"""

from collections.abc import Callable
from typing import Protocol

_PART = 3
# A smaller limit is not shared out: the part that is kept free would be most of it.
_SHARED_FROM = 8

UNLIMITED = 2**60


class Capacity:
    """All resources of one worker."""

    def __init__(self, attempts: int) -> None:
        # Called when something was given back that rows wait for.
        self.when_freed: Callable[[], None] = lambda: None
        self.places = self.resource(attempts)
        # The event loop that executes users' coroutines: none of it while a handler blocks it.
        self.coroutines = self.resource(UNLIMITED)

    def resource(self, limit: int, part_of: "Resource | None" = None) -> "Resource":
        return Resource(self, limit, part_of)


class Listener(Protocol):
    """Rows that wait."""

    def freed(self, resource: "Resource") -> None: ...

    def look_at(self, needs: "Needs") -> None: ...


class Resource:
    __slots__ = ("_capacity", "_part_of", "limit", "listeners", "taken")

    def __init__(self, capacity: Capacity, limit: int, part_of: "Resource | None") -> None:
        self.limit = limit
        self.taken = 0
        self._capacity = capacity
        self._part_of = part_of
        # Each is called once, the next time that something is given back.
        self.listeners: set[Listener] = set()

    @property
    def free(self) -> int:
        free = self.limit - self.taken
        shared = self._part_of
        if shared is not None and shared.limit >= _SHARED_FROM:
            # Each one that is taken also leaves less of the shared resource.
            free = min(free, -(-(_PART * shared.free - self.taken) // (_PART + 1)))
        return max(0, free)

    def take(self, count: int) -> None:
        self.taken += count

    def give_back(self, count: int) -> None:
        self.taken -= count
        if count > 0:
            self._notify()

    def set_limit(self, limit: int) -> None:
        self.limit = limit
        if self.free:
            self._notify()

    def _notify(self) -> None:
        if self.listeners:
            listeners, self.listeners = self.listeners, set()
            for listener in listeners:
                listener.freed(self)
            self._capacity.when_freed()

    def lacking(self) -> "Resource | None":
        """The resource of which something must be given back before any of this is free."""
        if self.taken >= self.limit:
            return self
        if self._part_of is None or self.free > 0:
            return None
        return self._part_of.lacking() or self._part_of


class Needs:
    """What each call of one kind needs. One call executes up to `batch` attempts."""

    __slots__ = ("_batch", "begun", "listeners", "resources")

    def __init__(self, *resources: Resource, batch: int = 1) -> None:
        self.resources = resources
        self._batch = batch
        # How many attempts with these needs were allowed to begin, in all.
        self.begun = 0
        # Each is called once, when the resources themselves are exchanged.
        self.listeners: set[Listener] = set()

    def exchange(self, *resources: Resource) -> None:
        """From now on it needs other resources; what is taken was taken of those."""
        self.resources = resources
        listeners, self.listeners = self.listeners, set()
        for listener in listeners:
            listener.look_at(self)

    def room(self) -> int:
        """How many attempts could begin now."""
        return min((resource.free for resource in self.resources), default=UNLIMITED) * self._batch

    def take(self, attempts: int) -> None:
        calls = self._calls(attempts)
        for resource in self.resources:
            resource.take(calls)

    def give_back(self, attempts: int, still_needed: int = 0) -> None:
        """What this many attempts had taken together, except what some of them still need."""
        calls = self._calls(attempts) - self._calls(still_needed)
        for resource in self.resources:
            resource.give_back(calls)

    def take_back(self, attempts: int) -> None:
        """They were only counted: nothing became free that was not free before."""
        calls = self._calls(attempts)
        for resource in self.resources:
            resource.take(-calls)

    def lacking(self) -> Resource:
        """If there is no room: the resource of which something must be given back before there is."""
        return next(filter(None, [resource.lacking() for resource in self.resources]))

    def _calls(self, attempts: int) -> int:
        return -(-attempts // self._batch)


# Whatever can always begin.
NOTHING = Needs()
