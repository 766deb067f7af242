"""An encoded status starts with its state, whichever code encodes it: queries count states by the first two bytes."""

import pytest

from clepsydra.core.action.state_machine import LIVE
from clepsydra.core.state_bytes import LIVE_FIRST, LIVE_LAST, is_live, state_bytes, state_of
from clepsydra.core.times import timestamp
from clepsydra.scheduler.codec import with_removable_time
from clepsydra.store.port import Action
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import State, Status

STATES = [state for state in State.values() if state != action_pb2.STATE_UNSPECIFIED]


@pytest.mark.parametrize("state", STATES)
def test_the_encoder_writes_the_state_first(state: State) -> None:
    # Every field is set, those behind and those of messages included, and the state last of all.
    status = Status(reason="r", scheduled_time=timestamp(1), occurrence_time=timestamp(2), removable_time=timestamp(3))
    status.counters.runs = 1
    status.last_attempt.error = "e"
    status.occurrence.failed_attempts = 1
    status.attempts.add(number=1)
    status.state = state

    for encoded in (status.SerializeToString(), status.SerializeToString(deterministic=True)):
        assert encoded[:2] == state_bytes(state)
        assert state_of(encoded) == state
        assert is_live(encoded) == (state in LIVE)


def test_a_field_that_is_appended_or_not_known_does_not_come_before_the_state() -> None:
    known = Status(state=action_pb2.PAUSED).SerializeToString()
    appended = with_removable_time(Action("a", "g", b"", b"", known, 0), 7).status
    unknown = Status.FromString(known + b"\xf8\x3f\x01").SerializeToString()

    assert state_of(appended) == state_of(unknown) == action_pb2.PAUSED
    assert len(unknown) > len(known), "the unknown field is kept"


def test_live_states_are_one_range_of_bytes() -> None:
    assert set(range(LIVE_FIRST, LIVE_LAST + 1)) == LIVE
