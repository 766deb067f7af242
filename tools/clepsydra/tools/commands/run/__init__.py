"""Commands that make a store, or run servers on it."""
