"""Long random sequences, several calls in flight at once: each store against the memory store.

`python -m tests.stateful --examples 200` is the long form.
"""
