"""What a snapshot of the store says of an action: whether an attempt runs, and why it runs, waits or does not run."""
