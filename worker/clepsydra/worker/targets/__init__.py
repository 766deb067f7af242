"""What a worker executes: HTTP requests, Python handlers and log lines."""

from clepsydra.worker.targets.dispatch import Targets

__all__ = ["Targets"]
