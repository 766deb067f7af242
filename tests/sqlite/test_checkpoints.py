"""What was committed is moved into the file when enough was written since the last time, and not at every commit."""

from clepsydra.store.sqlite.checkpoints import Log


def test_a_log_is_moved_whenever_as_much_was_written_again_and_not_at_every_commit() -> None:
    log, moves = Log(), []
    for pages in range(0, 3_500, 5):
        log.written(pages)
        if log.is_long():
            log.moving()
            log.moved(pages)
            moves.append(pages)
    assert moves == [1_000, 2_000, 3_000]


def test_what_is_written_while_a_log_is_moved_counts_towards_the_next_time() -> None:
    log = Log()
    log.written(1_000)
    log.moving()
    log.written(1_500)
    log.moved(1_500)
    assert not log.is_long()
    log.written(2_000)
    assert log.is_long()


def test_only_a_log_that_has_grown_far_too_long_makes_writers_wait() -> None:
    log = Log()
    log.moved(15_000)
    log.written(999)
    assert not log.is_too_long()
    log.written(1_000)
    assert log.is_too_long()
    log.moving()
    log.moved(0)
    assert not log.is_too_long()
