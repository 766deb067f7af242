"""What happened in a small world, in words."""

from tests.interleaving.state import Write
from tests.interleaving.world import EPOCH_US

# In words already, or as the call that was made and how it went.
Label = str | tuple[Write, str]


def describe(label: Label) -> str:
    """A move in words."""
    return label if isinstance(label, str) else _describe(label[0]) + label[1]


def _describe(write: Write) -> str:
    who = f"worker {write.worker}" if write.worker >= 0 else f"call {write.call}"
    row = write.row or (write.advance.row if write.advance is not None else None)
    if row is None:
        return f"{who}: {write.kind}"
    to_us = write.advance.to_us if write.advance is not None else None
    to = f" to {_seconds(to_us)}" if to_us is not None else ""
    return f"{who}: {write.kind} {row.action_id} {row.guid[-2:]} at {_seconds(row.at_us)} in {row.queue.value}{to}"


def _seconds(us: int) -> str:
    return f"{(us - EPOCH_US) / 1e6:.6f}"
