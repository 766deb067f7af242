"""Python handlers: how they are registered, loaded and called."""
