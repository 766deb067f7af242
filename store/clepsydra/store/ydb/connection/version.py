"""The server's version. Below the minimum the store works, but the server has known defects that break its promises."""

import logging
import re

from clepsydra.store.errors import StoreError
from clepsydra.store.ydb.connection.sessions import Sessions

# It fixed inconsistent results in transactions that read and write, and broken serializability after a restart of a
# partition.
MINIMUM = (25, 3, 1, 27)
RECOMMENDED = (25, 4, 1, 15)

_NUMBERS = re.compile(r"(?<![0-9])(\d{2})[.-](\d+)(?:[.-](\d+))?(?:[.-](\d+))?")

_log = logging.getLogger(__name__)


async def server_version(sessions: Sessions) -> str | None:
    """As the node says that answers. None: it does not say."""
    try:
        results = await sessions.read("server_version", {})
    except StoreError:
        # An old server knows no such function. If it is something else, the calls that matter meet it as well.
        return None
    text: bytes = results.rows()[0]["version"]
    return text.decode(errors="replace")


async def warn_if_old(sessions: Sessions) -> None:
    text = await server_version(sessions)
    if text is not None and is_older(text, MINIMUM):
        _log.warning(
            "the server runs YDB %s, which has known defects in transactions; upgrade it to %s or newer, best %s",
            text,
            _shown(MINIMUM),
            _shown(RECOMMENDED),
        )


def is_older(text: str, version: tuple[int, ...]) -> bool:
    """Whether a server's version is older, as far as it says.

    >>> is_older("25.1.4.7", MINIMUM), is_older("25.3.1.27", MINIMUM), is_older("stable-24-4-hotfix", MINIMUM)
    (True, False, True)
    >>> is_older("25.3.1.ent.3", MINIMUM), is_older("main", MINIMUM)
    (False, False)
    """
    found = _NUMBERS.search(text)
    if found is None:
        return False
    numbers = tuple(int(number) for number in found.groups() if number is not None)
    return numbers < version[: len(numbers)]


def _shown(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
