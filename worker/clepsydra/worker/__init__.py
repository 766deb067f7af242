"""Executes actions on time: sync loops, attempts, handlers and targets.

Modules of handlers import these names; `docs/handlers.md` shows how.
"""

from clepsydra.worker.handlers.context import Context
from clepsydra.worker.handlers.registry import DoNotRetry, Registry, RetryAfter, handler

__all__ = ["Context", "DoNotRetry", "Registry", "RetryAfter", "handler"]
