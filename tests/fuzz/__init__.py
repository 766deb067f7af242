"""The API against generated messages, through a real channel: `python -m tests.fuzz --calls 50000 --seed 1`."""
