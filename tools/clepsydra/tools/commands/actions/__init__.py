"""Commands that call a scheduler."""
