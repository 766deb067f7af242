"""The rule for every batch of the port: it names an action at most once."""

from collections.abc import Iterable


def check_named_once(action_ids: Iterable[str]) -> None:
    """
    >>> check_named_once(["a", "b"])
    >>> check_named_once(["a", "b", "a"])
    Traceback (most recent call last):
    ...
    ValueError: a batch names an action at most once, and this one names 'a' again
    """
    named = list(action_ids)
    if len(set(named)) == len(named):
        return
    seen: set[str] = set()
    for action_id in named:
        if action_id in seen:
            raise ValueError(f"a batch names an action at most once, and this one names {action_id!r} again")
        seen.add(action_id)
