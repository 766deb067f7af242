"""Chaos with real processes: schedulers, workers and clients started apart, hurt by a nemesis, judged by a checker.

`verdict.py` states what is checked. `make test` runs a short form, `python -m tests.chaos` a long one.
"""
