"""The `clepsydra` command."""
