"""What an action remembers of its attempts, and how readers see it."""

from clepsydra.core.action.memory import EARLIER_ATTEMPTS_BYTES, remember, show_attempts, take_attempts
from clepsydra.core.action.spec import REMEMBERED_ATTEMPTS_DEFAULT, REMEMBERED_ATTEMPTS_MAX
from clepsydra.core.times import HOUR_US, MILLISECOND_US, SECOND_US, duration_us, timestamp, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Spec, Status
from tests.unit.lives import Life
from tests.unit.specs import NOON_US, fixed_rate, once, spec_of


def shown(status: Status) -> Status:
    copied = Status()
    copied.CopyFrom(status)
    show_attempts(copied)
    return copied


def taken_back(spec: Spec, status: Status) -> Status:
    """What an import stores of a status that was shown."""
    given = shown(status)
    take_attempts(spec, given)
    return given


def test_what_was_shown_can_be_taken_back_to_the_byte() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    for run in range(15):
        start_us = NOON_US + run * HOUR_US + run
        life.begin(start_us)
        if run % 3:
            life.succeed(start_us + SECOND_US)
        else:
            life.fail(start_us + SECOND_US)
            life.begin(life.planned_us + 5)
            life.succeed(life.planned_us + SECOND_US)
        assert taken_back(life.spec, life.status) == life.status


def test_a_first_success_stores_nothing_beside_the_last_attempt() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US + MILLISECOND_US)
    life.succeed(NOON_US + SECOND_US)

    assert not life.status.attempts
    assert not life.status.last_attempt.HasField("occurrence_time")
    assert not life.status.last_attempt.HasField("scheduled_time")
    [attempt] = shown(life.status).attempts
    assert us_of(attempt.occurrence_time) == us_of(attempt.scheduled_time) == NOON_US
    assert duration_us(attempt.lateness) == MILLISECOND_US


def test_an_action_that_ran_a_thousand_times_shows_its_last_ten_runs_with_their_lateness() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    for run in range(1000):
        start_us = NOON_US + run * HOUR_US + run
        life.begin(start_us)
        life.succeed(start_us + SECOND_US)

    attempts = shown(life.status).attempts
    assert life.counters.runs == 1000
    assert len(attempts) == REMEMBERED_ATTEMPTS_DEFAULT
    assert [duration_us(attempt.lateness) for attempt in attempts] == list(range(990, 1000))
    assert [us_of(attempt.occurrence_time) for attempt in attempts] == [
        NOON_US + run * HOUR_US for run in range(990, 1000)
    ]
    assert shown(life.status).last_attempt == attempts[-1]


def test_retries_are_late_by_their_own_plan_and_keep_the_occurrence() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US + SECOND_US)
    planned_us = life.planned_us
    life.begin(planned_us + 7)
    life.succeed(planned_us + SECOND_US)
    life.run_now(planned_us + HOUR_US)

    first, second = shown(life.status).attempts
    assert (first.outcome, second.outcome) == (Attempt.FAILURE, Attempt.SUCCESS)
    assert (first.number, second.number) == (1, 2)
    assert us_of(first.occurrence_time) == us_of(second.occurrence_time) == NOON_US
    assert us_of(second.scheduled_time) == planned_us
    assert duration_us(second.lateness) == 7


def test_fifty_remembered_attempts_take_less_than_six_kibibytes() -> None:
    """With errors and a worker's name that are as long as they may be, and an occurrence of many retries."""
    spec = Spec(remembered_attempts=REMEMBERED_ATTEMPTS_MAX)
    status = Status(
        state=action_pb2.RETRYING,
        occurrence_time=timestamp(NOON_US + 123_456),
        scheduled_time=timestamp(NOON_US + 987_654),
    )
    for number in range(1_000_000 - 2 * REMEMBERED_ATTEMPTS_MAX, 1_000_000):
        remember(
            spec,
            status,
            Attempt(
                number=number,
                id=f"{'f' * 32}-{NOON_US}-{number}",
                start_time=timestamp(NOON_US + number),
                end_time=timestamp(NOON_US + number + 1),
                worker="a-pod-with-a-long-name-7d9f8b6c5d-x2x4z.eu-central-1:4711",
                outcome=Attempt.FAILURE,
                error="ä" * 2048,
            ),
        )

    assert taken_back(spec, status) == status
    assert len(status.attempts) == REMEMBERED_ATTEMPTS_MAX - 1
    added = status.ByteSize() - Status(last_attempt=status.last_attempt).ByteSize()
    assert added < EARLIER_ATTEMPTS_BYTES < 6 * 1024
    assert all(attempt.error.endswith("…") and attempt.worker.startswith("a-pod") for attempt in status.attempts)
    assert status.last_attempt.error == "ä" * 2048


def test_fewer_are_kept_as_soon_as_fewer_are_asked_for() -> None:
    spec = spec_of(fixed_rate(HOUR_US))
    life = Life(spec, accepted_us=NOON_US)
    for run in range(5):
        life.begin(NOON_US + run * HOUR_US)
        life.succeed(NOON_US + run * HOUR_US)
    life.spec.remembered_attempts = 1
    life.begin(NOON_US + 5 * HOUR_US)
    life.succeed(NOON_US + 5 * HOUR_US)

    assert not life.status.attempts
    assert len(shown(life.status).attempts) == 1
