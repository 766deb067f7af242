"""An array that is sent as text arrives as the array that it was."""

import random

import asyncpg
import pytest

from clepsydra.store.postgres.array_parameters import number_array, text_array

_PIECES = [
    '"',
    "\\",
    "{",
    "}",
    ",",
    "NULL",
    "null",
    " ",
    "\n",
    "\t",
    "'",
    "a",
    "Z9",
    "\u00e9",
    "\u4e2d",
    "\U0001f570",
    "$1",
    "",
]


async def test_texts_arrive_as_they_were(operator: asyncpg.Connection) -> None:
    chance = random.Random(7)
    for length in range(1, 60):
        sent = ["".join(chance.choices(_PIECES, k=chance.randrange(6))) for _ in range(length)]
        assert await operator.fetchval("SELECT $1::text::text[]", text_array(sent)) == sent


async def test_numbers_arrive_as_they_were(operator: asyncpg.Connection) -> None:
    chance = random.Random(7)
    for length in range(1, 60):
        sent = [chance.choice([None, 0, -1, 2**63 - 1, chance.getrandbits(50)]) for _ in range(length)]
        arrived = await operator.fetchval("SELECT $1::text::bigint[]", number_array(sent))
        assert arrived == (sent if any(number is not None for number in sent) else [])


def test_a_character_that_postgresql_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must not contain the character U\+0000"):
        text_array(["a", "b\0c"])
