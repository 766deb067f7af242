"""Hostile callers against a real scheduler: what they cost it, and how a well-behaved caller fares beside them."""
