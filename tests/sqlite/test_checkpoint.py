"""A checkpoint is made when enough was written since the last one, and not at every commit."""

from clepsydra.store.sqlite.connection.checkpoint import Log


def test_a_checkpoint_is_made_whenever_as_much_was_written_again_and_not_at_every_commit() -> None:
    log, checkpoints = Log(), []
    for pages in range(0, 3_500, 5):
        log.written(pages)
        if log.is_long():
            log.checkpoint_starts()
            log.checkpoint_ended(pages)
            checkpoints.append(pages)
    assert checkpoints == [1_000, 2_000, 3_000]


def test_what_is_written_during_a_checkpoint_counts_towards_the_next_one() -> None:
    log = Log()
    log.written(1_000)
    log.checkpoint_starts()
    log.written(1_500)
    log.checkpoint_ended(1_500)
    assert not log.is_long()
    log.written(2_000)
    assert log.is_long()


def test_only_a_log_that_has_grown_far_too_long_makes_writers_wait() -> None:
    log = Log()
    log.checkpoint_ended(15_000)
    log.written(999)
    assert not log.is_too_long()
    log.written(1_000)
    assert log.is_too_long()
    log.checkpoint_starts()
    log.checkpoint_ended(0)
    assert not log.is_too_long()
