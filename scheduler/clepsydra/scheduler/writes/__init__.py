"""How a change by a user reaches the store: mutations, batches, and retries until the outcome is known."""
