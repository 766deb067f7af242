"""Attempts in flight: the pool that executes them, their leases, and the completer that writes their outcomes."""
