"""What an action is and what happens to it: its spec, the state machine, schedules, retries, attempts."""
