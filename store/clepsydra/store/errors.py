"""The ways in which a store call can fail. A failed precondition is not one of them: it is an outcome."""


class StoreError(Exception):
    """What happened, to what, and what to do about it, in one sentence."""


class Unavailable(StoreError):
    """The store certainly did nothing: the call can be repeated."""


class OutcomeUnknown(StoreError):
    """The store may have done it. Every call of the port is safe to repeat exactly as it was sent."""


class Unusable(StoreError):
    """No repetition will help: a wrong schema, a missing file, no permission, a corrupt disk."""


class StoreLost(Unusable):
    """This process may trust neither the store nor what it has cached of it: it acknowledges nothing more, and ends.

    Another process, started afterwards, may find the store in order.
    """


class OtherShards(Unusable):
    """The installation has another number of shards than was asked for."""


class WrongUrl(Unusable):
    """The URL cannot name a store, whether one exists or not."""
