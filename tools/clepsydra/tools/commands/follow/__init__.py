"""Commands that follow one action: what it does, and why."""
