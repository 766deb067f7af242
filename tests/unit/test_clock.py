"""A disciplined clock follows its store, is carried on by the machine, and bounds the true time from both sides."""

import time

from clepsydra.core.clock import DisciplinedClock, SystemClock
from clepsydra.core.times import HOUR_US, MILLISECOND_US, SECOND_US, seconds
from tests.unit.specs import NOON_US


class Machine:
    """A machine whose wall clock and monotonic clock are set by hand."""

    def __init__(self) -> None:
        self.wall_us = NOON_US
        self.up_us = 5 * SECOND_US

    def now_us(self) -> int:
        return self.wall_us

    def monotonic_us(self) -> int:
        return self.up_us

    def pass_time(self, us: int) -> None:
        self.wall_us += us
        self.up_us += us


def test_before_the_store_has_answered_the_machines_own_time_holds() -> None:
    machine = Machine()
    clock = DisciplinedClock(machine)
    machine.pass_time(SECOND_US)
    assert clock.now_us() == NOON_US + SECOND_US


def test_the_stores_answer_replaces_the_machines_time_and_is_carried_on() -> None:
    machine = Machine()
    clock = DisciplinedClock(machine)
    clock.anchor(NOON_US - HOUR_US, machine.up_us)
    machine.pass_time(3)
    assert clock.now_us() == NOON_US - HOUR_US + 3


def test_a_wall_clock_that_jumps_changes_nothing() -> None:
    machine = Machine()
    clock = DisciplinedClock(machine)
    clock.anchor(NOON_US, machine.up_us)
    machine.wall_us += HOUR_US
    machine.pass_time(SECOND_US)
    assert clock.now_us() == NOON_US + SECOND_US


def test_an_answer_that_was_long_on_its_way_makes_the_clock_late_and_never_early() -> None:
    machine = Machine()
    clock = DisciplinedClock(machine)
    asked_us, store_now_us = machine.up_us, machine.wall_us
    machine.pass_time(2 * SECOND_US)
    clock.anchor(store_now_us, asked_us)
    assert clock.now_us() == machine.wall_us - 2 * SECOND_US


def test_whenever_the_store_read_its_clock_the_true_time_lies_between_the_bounds() -> None:
    for read_after_us in (0, SECOND_US, 2 * SECOND_US):
        machine = Machine()
        clock = DisciplinedClock(machine)
        asked_us = machine.up_us
        machine.pass_time(read_after_us)
        store_now_us = machine.wall_us
        machine.pass_time(2 * SECOND_US - read_after_us)
        clock.anchor(store_now_us, asked_us)
        machine.pass_time(HOUR_US)
        assert clock.now_us() <= machine.wall_us <= clock.latest_us()
        assert clock.latest_us() - clock.now_us() == 2 * SECOND_US


def test_a_slow_answer_does_not_widen_bounds_that_a_quick_one_has_set() -> None:
    machine = Machine()
    clock = _anchored(machine)
    asked_us, store_now_us = machine.up_us, machine.wall_us
    machine.pass_time(3 * SECOND_US)
    clock.anchor(store_now_us, asked_us)
    assert machine.wall_us - 1_500 <= clock.now_us() <= machine.wall_us <= clock.latest_us() <= machine.wall_us + 1_500


def test_both_bounds_follow_a_store_that_was_set_forward_or_back() -> None:
    for step_us in (HOUR_US, -HOUR_US):
        machine = Machine()
        clock = _anchored(machine)
        asked_us, store_now_us = machine.up_us, machine.wall_us + step_us
        machine.pass_time(SECOND_US)
        clock.anchor(store_now_us, asked_us)
        assert (clock.now_us(), clock.latest_us()) == (store_now_us, store_now_us + SECOND_US)


def _anchored(machine: Machine, store_behind_us: int = 0) -> DisciplinedClock:
    """A clock that has just had an answer without any delay."""
    clock = DisciplinedClock(machine)
    clock.anchor(machine.wall_us - store_behind_us, machine.up_us)
    return clock


def test_a_slow_answer_does_not_put_a_clock_back_that_a_quick_one_has_set() -> None:
    machine = Machine()
    clock = _anchored(machine, store_behind_us=HOUR_US)
    asked_us, store_now_us = machine.up_us, machine.wall_us - HOUR_US
    machine.pass_time(30 * MILLISECOND_US)
    clock.anchor(store_now_us, asked_us)
    late_us = machine.wall_us - HOUR_US - clock.now_us()
    assert 0 <= late_us <= 15


def test_what_was_learnt_long_ago_makes_the_clock_late_by_what_clocks_may_run_apart() -> None:
    machine = Machine()
    clock = _anchored(machine)
    for _ in range(100):
        machine.pass_time(SECOND_US)
        asked_us, store_now_us = machine.up_us, machine.wall_us
        machine.pass_time(30 * MILLISECOND_US)
        clock.anchor(store_now_us, asked_us)
    assert 20 * MILLISECOND_US < machine.wall_us - clock.now_us() <= 30 * MILLISECOND_US


def test_a_quicker_answer_puts_the_clock_forward() -> None:
    machine = Machine()
    clock = _anchored(machine, store_behind_us=30 * MILLISECOND_US)
    clock.anchor(machine.wall_us, machine.up_us - 5)
    assert clock.now_us() == machine.wall_us


def test_a_store_that_was_set_back_is_followed_at_once() -> None:
    machine = Machine()
    clock = _anchored(machine)
    asked_us = machine.up_us
    machine.pass_time(30 * MILLISECOND_US)
    clock.anchor(NOON_US - SECOND_US, asked_us)
    assert clock.now_us() == NOON_US - SECOND_US


def test_the_machines_own_time_is_not_kept_after_the_stores_first_answer() -> None:
    machine = Machine()
    clock = DisciplinedClock(machine)
    asked_us, store_now_us = machine.up_us, machine.wall_us
    machine.pass_time(SECOND_US)
    clock.anchor(store_now_us, asked_us)
    assert clock.now_us() == store_now_us


def test_the_time_that_has_passed_is_the_machines_whatever_the_store_says() -> None:
    machine = Machine()
    clock = DisciplinedClock(machine)
    clock.anchor(NOON_US + HOUR_US, machine.up_us)
    assert clock.monotonic_us() == 5 * SECOND_US


def test_the_system_clock_reads_the_machines_clocks_in_microseconds() -> None:
    clock = SystemClock()
    before_ns, up_ns = time.time_ns(), time.monotonic_ns()
    now_us, latest_us, monotonic_us = clock.now_us(), clock.latest_us(), clock.monotonic_us()
    assert before_ns // 1000 <= now_us <= latest_us <= time.time_ns() // 1000
    assert up_ns // 1000 <= monotonic_us <= time.monotonic_ns() // 1000


def test_seconds_are_what_timers_take() -> None:
    assert seconds(1_500_000) == 1.5
