"""The store in memory: the specification that every other store is held to."""

from clepsydra.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
