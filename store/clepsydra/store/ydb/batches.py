"""The server's limits on a batch: how many rows and bytes one text may carry."""

from collections.abc import Sequence

# A greater transaction is aborted more often, and touches more partitions at once.
ROWS_MAX = 1000
# Half of what the server accepts as parameters of one text.
_BYTES_MAX = 24 * 1024 * 1024


def split(indexes: Sequence[int], sizes: Sequence[int] | None = None) -> list[list[int]]:
    """The indexes of a batch in as few parts as the limits allow, in order. `sizes` are the bytes of each item.

    >>> [len(part) for part in split(range(2500))]
    [1000, 1000, 500]
    >>> split([3, 5, 8], [20_000_000, 4_000_000, 2_000_000])
    [[3, 5], [8]]
    """
    parts: list[list[int]] = []
    room = 0
    for index, size in zip(indexes, sizes or [0] * len(indexes), strict=True):
        if not parts or len(parts[-1]) == ROWS_MAX or size > room:
            parts.append([])
            room = _BYTES_MAX
        parts[-1].append(index)
        room -= size
    return parts
