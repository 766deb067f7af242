"""Fields of an action as flags: what a row of the flag table is, and the types of its values."""
