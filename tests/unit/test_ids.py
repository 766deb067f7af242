"""Guids, ids, shards and jitter from one source of randomness."""

import itertools
import random
import string

import pytest

from clepsydra.core.ids import GUID_LENGTH, Ids, action_id_for_request
from clepsydra.core.limits import ID_LENGTH, REQUEST_ID_LENGTH
from clepsydra.core.times import END_OF_TIME_US
from tests.unit.specs import NOON_US


def test_a_guid_is_128_random_bits_in_a_text_of_one_length() -> None:
    ids = Ids(random.Random(1))
    guids = [ids.guid() for _ in range(10_000)]
    assert len(set(guids)) == len(guids)
    assert {len(guid) for guid in guids} == {GUID_LENGTH}
    # Every one of the bits is set in some and unset in others.
    ones, zeros = 0, 0
    for guid in guids:
        ones |= int(guid, 16)
        zeros |= ~int(guid, 16) & (2**128 - 1)
    assert ones == zeros == 2**128 - 1


def test_the_same_seed_gives_the_same_run_again() -> None:
    runs = []
    for _ in range(2):
        ids = Ids(random.Random(7))
        runs.append((ids.guid(), ids.action_id(NOON_US), ids.shard(64), ids.fraction()))
    assert runs[0] == runs[1]


def test_two_processes_never_share_a_seed() -> None:
    assert len({Ids.from_system().guid() for _ in range(100)}) == 100


def test_generated_ids_sort_by_the_time_of_their_creation() -> None:
    ids = Ids(random.Random(1))
    moments_us = [0, 1, NOON_US, NOON_US + 1, END_OF_TIME_US]
    generated = [ids.action_id(now_us) for now_us in moments_us]
    assert generated == sorted(generated)
    assert len({len(action_id) for action_id in generated}) == 1
    assert ids.action_id(NOON_US) != ids.action_id(NOON_US)


def test_ids_that_are_generated_together_ascend_and_are_like_any_other() -> None:
    ids = Ids(random.Random(1))
    generated = [action_id for _ in range(3) for action_id in ids.action_ids(1_000, NOON_US)]
    assert len(set(generated)) == 3_000
    assert {len(action_id) for action_id in generated} == {len(ids.action_id(NOON_US))}
    for start in range(0, 3_000, 1_000):
        batch = generated[start : start + 1_000]
        assert batch == sorted(batch)
        assert ids.action_id(NOON_US - 1) < batch[0] < batch[-1] < ids.action_id(NOON_US + 1)


def test_guids_that_are_drawn_together_are_those_that_would_be_drawn_one_by_one() -> None:
    one_by_one, together = Ids(random.Random(1)), Ids(random.Random(1))
    assert together.guids(3) == [one_by_one.guid() for _ in range(3)]
    assert together.guid() == one_by_one.guid()


def test_every_shard_gets_its_share_and_no_other_shard_is_chosen() -> None:
    ids = Ids(random.Random(1))
    counts = [0] * 8
    for _ in range(8_000):
        counts[ids.shard(8)] += 1
    assert min(counts) > 800
    assert max(counts) < 1_200


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1_000])
def test_adjacent_actions_share_a_shard_and_a_call_is_spread_over_many(count: int) -> None:
    shards = Ids(random.Random(1)).shard_runs(10_000, count)
    assert len(shards) == count
    runs = [list(run) for _, run in itertools.groupby(shards)]
    assert all(len(run) == 64 for run in runs[:-1])
    assert len(set(shards)) == len(runs) == -(-count // 64)


def test_fractions_lie_between_zero_and_one() -> None:
    ids = Ids(random.Random(1))
    fractions = [ids.fraction() for _ in range(1_000)]
    assert 0 <= min(fractions) < 0.01
    assert 0.99 < max(fractions) < 1


def test_the_id_made_of_a_request_id_is_the_same_for_a_replay_and_fits_the_limits() -> None:
    longest = "ä" * REQUEST_ID_LENGTH
    assert action_id_for_request("call-1") == action_id_for_request("call-1")
    assert action_id_for_request("call-1") != action_id_for_request("call-2")
    assert len(action_id_for_request(longest)) <= ID_LENGTH
    assert set(action_id_for_request(longest)) <= set(string.ascii_lowercase + string.digits + "-")
