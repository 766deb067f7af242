"""Executes actions on time: sync loops, attempts, handlers and targets."""
