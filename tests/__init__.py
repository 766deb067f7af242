"""Laid out by what they prove: see docs/testing.md."""
