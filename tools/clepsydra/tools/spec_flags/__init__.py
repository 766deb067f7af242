"""The flags that say what an action is: their table, and what a command does with those that it was given."""
