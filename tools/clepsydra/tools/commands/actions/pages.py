"""Pages of a listing, as `list` and `export` walk over them."""

from collections.abc import Iterator

from clepsydra.core.limits import PAGE_SIZE_MAX
from clepsydra.tools.client import Client
from clepsydra.v1.scheduler_pb2 import ListActionsRequest, ListActionsResponse


def pages(client: Client, limit: int | None, token: str) -> Iterator[ListActionsResponse]:
    """Pages up to the limit or the end. The last page has a token if there are more actions."""
    left = limit
    while True:
        size = PAGE_SIZE_MAX if left is None else min(left, PAGE_SIZE_MAX)
        page = client.call("ListActions", ListActionsRequest(page_size=size, page_token=token))
        yield page
        token = page.next_page_token
        left = None if left is None else left - len(page.actions)
        if not token or left == 0:
            return
