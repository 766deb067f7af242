"""Pages: stable, complete, and never too large for an answer."""

import pytest

from clepsydra.core.limits import PAGE_SIZE_DEFAULT, PAYLOAD_BYTES
from clepsydra.scheduler.api.pagination import id_of, token_of
from clepsydra.scheduler.errors import DeadlinePassed, InvalidArgument
from clepsydra.v1.action_pb2 import PythonHandler, Spec
from clepsydra.v1.scheduler_pb2 import ListActionsRequest, ListActionsResponse
from tests.scheduler.desk import Desk, story


async def page(desk: Desk, size: int = 0, token: str = "") -> ListActionsResponse:
    return await desk.scheduler.list_actions(ListActionsRequest(page_size=size, page_token=token))


async def listed(desk: Desk, size: int) -> list[list[str]]:
    pages = []
    token = ""
    while True:
        response = await page(desk, size, token)
        pages.append([action.meta.id for action in response.actions])
        token = response.next_page_token
        if not token:
            return pages


def flat(pages: list[list[str]]) -> list[str]:
    return [action_id for listed_ids in pages for action_id in listed_ids]


async def create(desk: Desk, count: int) -> list[str]:
    ids = [f"a{number:04}" for number in range(count)]
    for action_id in ids:
        await desk.create(action_id)
    return ids


@story
async def test_every_action_is_listed_once(desk: Desk) -> None:
    ids = await create(desk, 25)

    for size in (1, 7, 24, 25, 26, 1000):
        pages = await listed(desk, size)
        assert flat(pages) == ids
        assert all(len(listed_ids) == size for listed_ids in pages[:-1])


@story
async def test_an_action_is_listed_as_it_is_got(desk: Desk) -> None:
    await desk.create("a", request_id="r-1")

    [action] = (await page(desk)).actions

    assert action == await desk.get("a")


@story
async def test_a_page_has_a_default_size(desk: Desk) -> None:
    await create(desk, PAGE_SIZE_DEFAULT + 1)

    assert len((await page(desk)).actions) == PAGE_SIZE_DEFAULT


@story
async def test_no_actions_no_pages(desk: Desk) -> None:
    assert await page(desk) == ListActionsResponse()


@story
async def test_deleted_actions_are_passed_over_and_pages_are_full_all_the_same(desk: Desk) -> None:
    ids = await create(desk, 30)
    for action_id in ids[3:17]:
        await desk.delete(action_id)

    pages = await listed(desk, 5)

    assert flat(pages) == ids[:3] + ids[17:]
    assert [len(listed_ids) for listed_ids in pages] == [5, 5, 5, 1]


@story
async def test_a_page_is_cut_short_rather_than_wading_through_the_deleted(desk: Desk) -> None:
    ids = await create(desk, 60)
    for action_id in ids[:59]:
        await desk.delete(action_id)

    first = await page(desk, 1)

    assert first.next_page_token
    assert flat(await listed(desk, 1)) == ids[59:]


@story
async def test_what_happens_between_pages_disturbs_nobody_else(desk: Desk) -> None:
    ids = await create(desk, 10)
    first = await page(desk, 5)
    await desk.delete(first.actions[4].meta.id)
    await desk.create("a0000-new")

    second = await page(desk, 5, first.next_page_token)

    assert [action.meta.id for action in second.actions] == ids[5:]


@story
async def test_a_page_of_large_actions_fits_into_an_answer(desk: Desk) -> None:
    spec = Spec(handler=PythonHandler(name="f", payload=b"x" * PAYLOAD_BYTES))
    for number in range(30):
        await desk.create(f"a{number:02}", spec=spec)

    response = await page(desk, 1000)

    assert response.ByteSize() < 4 * 1024 * 1024
    assert flat(await listed(desk, 1000)) == [f"a{number:02}" for number in range(30)]


@story
async def test_a_page_is_not_read_for_someone_who_has_gone(desk: Desk) -> None:
    with pytest.raises(DeadlinePassed):
        await desk.scheduler.list_actions(ListActionsRequest(), remaining_s=0)


TOKEN = token_of("user-17")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "not a token",
        "äöü",
        TOKEN[:-1],
        TOKEN + "A",
        TOKEN + "=",
        TOKEN[1:],
        ("B" if TOKEN[0] != "B" else "C") + TOKEN[1:],
        TOKEN[:-2] + ("AA" if TOKEN[-2:] != "AA" else "BB"),
        "AAAAAAAA",
        "____",
    ],
)
def test_tokens_that_were_made_up_are_refused(token: str) -> None:
    @story
    async def tell(desk: Desk) -> None:
        with pytest.raises(InvalidArgument, match="page_token: must be the next_page_token"):
            await page(desk, token=token)

    tell()


@pytest.mark.parametrize("last_id", ["!", "~" * 255, "user-17"])
def test_tokens_hold_any_id(last_id: str) -> None:
    assert id_of(token_of(last_id)) == last_id
