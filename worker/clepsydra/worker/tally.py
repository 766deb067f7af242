"""Counters of what a worker has done so far."""

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Every attempt that began ends with exactly one of the four outcomes, or is still in flight."""

    migrated: int = 0
    begun: int = 0
    succeeded: int = 0
    failed: int = 0
    # Given up by this worker itself: its lease could not be kept, or the worker was stopped.
    interrupted: int = 0
    # The action was changed, or taken over, before the outcome was written: it was not accepted.
    superseded: int = 0
    # Attempts of other workers that this one found interrupted.
    found_interrupted: int = 0
    # Actions that were found to kill their workers.
    parked: int = 0
    expired: int = 0
    purged: int = 0
    collected: int = 0
    # Actions that could not be decoded and were set aside.
    undecodable: int = 0
    store_failures: int = 0
    # Times that a host was given fewer requests at once, because it failed or was silent; and that one recovered.
    limited_hosts: int = 0
    recovered_hosts: int = 0
    # Times that a coroutine of users blocked the event loop of all of them.
    blocked_loops: int = 0
