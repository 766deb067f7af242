"""What was committed is moved into the file when enough has gathered since the last time, and not at every commit."""

from collections.abc import Iterable

from clepsydra.store.sqlite.checkpoints import Log


def _moves(lengths: Iterable[int]) -> list[int]:
    """At which lengths a log is moved that has these ones, one after the other."""
    log, moves = Log(), []
    for pages in lengths:
        log.committed(pages)
        if log.is_long():
            log.moved(pages)
            moves.append(pages)
    return moves


def test_a_log_that_could_not_start_over_is_not_moved_at_every_commit() -> None:
    assert _moves(range(0, 3_500, 5)) == [1_000, 2_000, 3_000]


def test_a_log_that_has_started_over_is_moved_when_it_is_long_again() -> None:
    assert _moves([*range(0, 1_005, 5), *range(5, 1_005, 5), 500, 999, 1_001]) == [1_000, 1_000, 1_001]


def test_a_log_that_had_started_over_before_it_was_known_how_much_was_moved() -> None:
    log = Log()
    log.committed(1_000)
    log.committed(5)
    log.moved(1_000)
    log.committed(2_000)
    # Later than it might be, and not never.
    assert log.is_long()


def test_only_a_log_that_has_grown_far_too_long_makes_writers_wait() -> None:
    log = Log()
    log.committed(31_999)
    assert not log.is_too_long()
    log.committed(32_000)
    assert log.is_too_long()
