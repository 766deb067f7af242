"""Commands that read a store, or the settings."""
