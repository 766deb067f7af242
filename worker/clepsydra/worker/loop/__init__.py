"""The sync loop: which shard to hold, what to migrate, what to read, when to begin."""
