"""Executes actions on time: sync loops, attempts, handlers and targets.

These names are for modules of handlers; `docs/handlers.md` shows them at work.
"""

from clepsydra.worker.context import Context
from clepsydra.worker.handling import DoNotRetry, Registry, RetryAfter, handler

__all__ = ["Context", "DoNotRetry", "Registry", "RetryAfter", "handler"]
