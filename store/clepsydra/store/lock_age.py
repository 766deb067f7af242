"""When the heartbeat of a shard lock is too old, or lies in the future."""


def fresh_until_us(now_us: int, stale_before_us: int) -> int:
    """The latest heartbeat that a worker can have written by now: as far ahead as a heartbeat may be old.

    Clocks err by less. A later heartbeat was written before the store's clock was set back: nobody knows how old it is,
    so it counts as stale. Otherwise nobody would take over the shards of a dead worker until that time has come again.

    >>> fresh_until_us(100, 90)
    110
    """
    return now_us + (now_us - stale_before_us)
