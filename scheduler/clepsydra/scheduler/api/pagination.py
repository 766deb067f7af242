"""Pages of a listing: page tokens, and pages that fit into a response.

A token is the last id of the page before, with a checksum. A listing goes on after that id, whatever was added or
removed meanwhile, and a token that was cut or invented is refused.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable

from clepsydra.core.limits import PAGE_SIZE_DEFAULT
from clepsydra.core.validation.rules import FieldViolation
from clepsydra.scheduler.codec import decode_or_keys
from clepsydra.scheduler.errors import InvalidArgument
from clepsydra.store.port import Action
from clepsydra.v1.scheduler_pb2 import ListActionsRequest, ListActionsResponse

_CHECKSUM_BYTES = 6

# gRPC clients refuse messages of more than 4 MiB by default.
_PAGE_BYTES = 3 * 1024 * 1024
# A hundred of the largest actions still fit into memory easily.
_READ_AT_ONCE = 100
# A page is cut short if it would have to skip too many deleted actions.
_READS_MAX = 20

ReadAfter = Callable[[str | None, int], Awaitable[list[Action]]]


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


async def page(request: ListActionsRequest, read_after: ReadAfter) -> ListActionsResponse:
    """One page; only the last one has no token."""
    page_size = request.page_size or PAGE_SIZE_DEFAULT
    after_id = id_of(request.page_token) if request.page_token else None
    response = ListActionsResponse()
    bytes_left = _PAGE_BYTES
    for _ in range(_READS_MAX):
        wanted = min(page_size - len(response.actions) + 1, _READ_AT_ONCE)
        stored = await read_after(after_id, wanted)
        for action in stored:
            # One action that cannot be decoded must not hide all those behind it.
            decoded = decode_or_keys(action)
            if not decoded.is_deleted:
                if len(response.actions) == page_size or bytes_left <= 0:
                    return _with_next_page(response, after_id)
                response.actions.append(decoded.action)
                bytes_left -= len(action.meta) + len(action.spec) + len(action.status)
            after_id = action.action_id
        if len(stored) < wanted:
            return response
    return _with_next_page(response, after_id)


def _with_next_page(response: ListActionsResponse, last_id: str | None) -> ListActionsResponse:
    assert last_id is not None, "a page that is cut short has read something"
    response.next_page_token = token_of(last_id)
    return response
