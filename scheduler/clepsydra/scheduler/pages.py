"""Pages of a listing: tokens that say where to go on, and pages that fit into an answer.

A token is the last id of the page before, with a checksum: a listing goes on from there whatever was added or removed
meanwhile, and a token that was cut or made up is recognised.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable

from clepsydra.core.limits import PAGE_SIZE_DEFAULT
from clepsydra.core.validation import FieldViolation
from clepsydra.scheduler.errors import Damaged, InvalidArgument
from clepsydra.scheduler.records import Record, decoded, salvaged
from clepsydra.store.port import Action
from clepsydra.v1.scheduler_pb2 import ListActionsRequest, ListActionsResponse

_CHECKSUM_BYTES = 6

# gRPC clients refuse answers of more than 4 MiB unless told otherwise.
_PAGE_BYTES = 3 * 1024 * 1024
# Read at once: a hundred of the largest actions are still no burden.
_READ_AT_ONCE = 100
# A page is cut short rather than wading through any number of deleted actions.
_READS_MAX = 20

ReadOn = Callable[[str | None, int], Awaitable[list[Action]]]


def token_of(last_id: str) -> str:
    return base64.urlsafe_b64encode(_checksum(last_id.encode()) + last_id.encode()).rstrip(b"=").decode()


def id_of(token: str) -> str:
    """
    >>> id_of(token_of("user-17"))
    'user-17'
    """
    try:
        last_id = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[_CHECKSUM_BYTES:].decode()
    except ValueError:
        last_id = ""
    if not last_id or token_of(last_id) != token:
        raise InvalidArgument((FieldViolation("page_token", "must be the next_page_token of an earlier page"),))
    return last_id


def _checksum(last_id: bytes) -> bytes:
    return hashlib.blake2b(last_id, digest_size=_CHECKSUM_BYTES, person=b"list actions").digest()


async def page(request: ListActionsRequest, read_on: ReadOn) -> ListActionsResponse:
    """One page; only the last one has no token."""
    page_size = request.page_size or PAGE_SIZE_DEFAULT
    after_id = id_of(request.page_token) if request.page_token else None
    response = ListActionsResponse()
    bytes_left = _PAGE_BYTES
    for _ in range(_READS_MAX):
        wanted = min(page_size - len(response.actions) + 1, _READ_AT_ONCE)
        stored = await read_on(after_id, wanted)
        for action in stored:
            record = _shown(action)
            if not record.is_deleted:
                if len(response.actions) == page_size or bytes_left <= 0:
                    return _to_be_continued(response, after_id)
                response.actions.append(record.action)
                bytes_left -= len(action.meta) + len(action.spec) + len(action.status)
            after_id = action.action_id
        if len(stored) < wanted:
            return response
    return _to_be_continued(response, after_id)


def _to_be_continued(response: ListActionsResponse, last_id: str | None) -> ListActionsResponse:
    assert last_id is not None, "whoever reads on has read something"
    response.next_page_token = token_of(last_id)
    return response


def _shown(action: Action) -> Record:
    """One action that cannot be read must not hide all those behind it."""
    try:
        return decoded(action)
    except Damaged:
        return salvaged(action)
