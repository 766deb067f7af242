"""Executes actions on time: sync loops, attempts, handlers and targets.

Modules of handlers import these names; `docs/handlers.md` shows how.
"""

from clepsydra.worker.handlers.registry import DoNotRetry, Registry, RetryAfter, handler
from clepsydra.worker.running import Context

__all__ = ["Context", "DoNotRetry", "Registry", "RetryAfter", "handler"]
