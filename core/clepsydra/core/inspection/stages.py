"""What a run went through, by the row's provenance and the attempt: when each stage was reached, how long each took.

An attempt whose end is written has given its row on, so the time at which it was begun is known only while it runs. A
change by a user makes a row of its own: one that came in after the last run says nothing about that run.
"""

from clepsydra.core.ids import is_extension
from clepsydra.core.inspection.situation import Situation
from clepsydra.core.times import MILLISECOND_US, duration, timestamp, us_of
from clepsydra.v1.scheduler_pb2 import Stage

# Shorter delays are not worth an explanation.
NOTICED_US = 100 * MILLISECOND_US

_DUE, _ENDED = "was due", "ended"


def stages(situation: Situation) -> list[Stage]:
    """In the order of their times, each with the time since the one before."""
    reached = sorted(_reached(situation).items(), key=lambda stage: stage[1])
    due_us = dict(reached).get(_DUE)
    latest = _latest(reached, due_us)
    made: list[Stage] = []
    before_us: int | None = None
    for name, at_us in reached:
        stage = Stage(name=name, time=timestamp(at_us), made_it_late=name == latest)
        if before_us is not None:
            stage.took.CopyFrom(duration(at_us - before_us))
        made.append(stage)
        before_us = at_us
    return made


def _reached(situation: Situation) -> dict[str, int]:
    """The stages of the attempt that runs; or of the last one that ended; or of the wait for the first."""
    live, status = situation.live, situation.status
    found: dict[str, int | None] = {}
    if live is not None:
        found = {"came in": live.added_at_us, "was let through": live.moved_at_us}
    if situation.running is not None or situation.has_unfinished_attempt:
        assert live is not None
        found[_DUE] = situation.planned_us
        found["was begun"] = None if is_extension(live.rescheduled_by or "") else live.row.rescheduled_at_us
    elif status.HasField("last_attempt"):
        attempt = status.last_attempt
        started_us = us_of(attempt.start_time)
        if live is not None and live.added_at_us > started_us:
            found.clear()
        found[_DUE] = us_of(attempt.scheduled_time)
        found["started"] = started_us
        found[_ENDED] = us_of(attempt.end_time)
    elif situation.is_due:
        found[_DUE] = situation.planned_us
    return {name: at_us for name, at_us in found.items() if at_us is not None}


def _latest(reached: list[tuple[str, int]], due_us: int | None) -> str | None:
    """The longest stage between the planned time and the start, if it is long enough to explain."""
    if due_us is None:
        return None
    longest_us, latest, before_us = NOTICED_US, None, due_us
    for name, at_us in reached:
        if name in (_DUE, _ENDED) or at_us <= due_us:
            continue
        if at_us - before_us >= longest_us:
            longest_us, latest = at_us - before_us, name
        before_us = at_us
    return latest
