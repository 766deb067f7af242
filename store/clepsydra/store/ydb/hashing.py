"""The hash of an action's id: the first column of the key of `scheduled_actions`.

Queues name an action by its id alone, so the hash must be computable in YQL as well:

    FromBytes(Substring(Digest::Sha256(CAST(action_id AS String)), 0, 8), Uint64)
"""

import hashlib


def id_hash(action_id: str) -> int:
    """The first eight bytes of the id's SHA-256, as a little-endian number.

    >>> id_hash("abc")
    16919744041952114874
    """
    return int.from_bytes(hashlib.sha256(action_id.encode()).digest()[:8], "little")
