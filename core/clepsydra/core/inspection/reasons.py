"""Why an action runs, waits or does not run: a list of small functions, one reason each. The first that holds answers.

A feature that can hold an action back adds its function here, at its place in the order.
"""

from collections.abc import Callable
from typing import NamedTuple

from clepsydra.core.action.state_machine import LIVE, kept_until_us
from clepsydra.core.inspection.situation import Situation
from clepsydra.core.tables import Queue
from clepsydra.core.times import us_of
from clepsydra.core.wording import relative_time, rounded_duration, time_and_distance, to_the_second
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, State

# How a handler's executor reports that a worker does not have the handler.
NO_HANDLER_ERROR = "no handler named "


class Answer(NamedTuple):
    # A name for programs, and the sentence for people.
    reason: str
    sentence: str
    # In a sentence each; empty if there is nothing.
    waits_for: str = ""
    next: str = ""


Reason = Callable[[Situation], Answer | None]


def deleted(situation: Situation) -> Answer | None:
    if situation.status.state != action_pb2.DELETED:
        return None
    purged = _when(situation, situation.planned_us)
    return Answer(
        "DELETED",
        f"It was deleted on {_changed(situation)}.",
        "Nothing: it is remembered only so that repeated calls are recognised.",
        f"It is purged at {purged}.",
    )


def unreadable(situation: Situation) -> Answer | None:
    if situation.status.state in _KNOWN_STATES:
        return None
    return Answer(
        "UNREADABLE",
        f"Its state, {situation.status.state}, was written by a newer version than this one.",
        "A worker of that version.",
        "Workers of older versions set it aside and look at it again.",
    )


def paused(situation: Situation) -> Answer | None:
    if situation.status.state != action_pb2.PAUSED:
        return None
    return Answer(
        "PAUSED",
        f"It was paused on {_changed(situation)}.",
        "A user who resumes it.",
        f"`clepsydra resume {situation.meta.id}` lets it go on.",
    )


def expired(situation: Situation) -> Answer | None:
    status = situation.status
    if status.state != action_pb2.EXPIRED:
        return None
    occurrence = to_the_second(us_of(status.occurrence_time))
    return Answer("EXPIRED", f"It expired: {status.reason}, planned for {occurrence}.", "", _kept(situation))


def ended(situation: Situation) -> Answer | None:
    status = situation.status
    attempt = status.last_attempt
    when = _when(situation, us_of(attempt.end_time))
    if status.state == action_pb2.SUCCEEDED:
        sentence = f"It ended at {when}: its last attempt succeeded."
    elif status.state == action_pb2.FAILED:
        reason, error = _short(status.reason), _short(attempt.error)
        sentence = f"It failed at {when}: {reason}" + (
            f"; the last error was: {error}." if error not in reason else "."
        )
    elif status.state == action_pb2.CANCELLED:
        sentence = f"It was cancelled on {_changed(situation)}."
    else:
        return None
    return Answer("ENDED", sentence, "", _kept(situation))


def without_row(situation: Situation) -> Answer | None:
    if situation.live is not None:
        return None
    return Answer(
        "DAMAGED",
        "It has no live row where one must be, so no worker will find it.",
        "An operator who repairs the installation.",
        "`clepsydra audit` checks it, `clepsydra audit --repair` gives it a row again.",
    )


def running(situation: Situation) -> Answer | None:
    attempt, worker = situation.running, situation.attempts_worker
    if attempt is None:
        return None
    since, lease = us_of(attempt.start_time), _when(situation, us_of(attempt.lease_end_time))
    where = f" on worker {attempt.worker}" if attempt.worker else " on a worker that holds no shard any more"
    if worker is not None and worker.locked and situation.heartbeat_age_us(worker) > _GIVEN_UP_US:
        age = rounded_duration(situation.heartbeat_age_us(worker))
        return Answer(
            "INTERRUPTED",
            f"Attempt {attempt.attempt_number} began at {_when(situation, since)}{where}, which has given no sign of "
            f"life for {age}.",
            "The end of the attempt's lease.",
            f"If the worker is dead, another one begins the next attempt at {lease}.",
        )
    return Answer(
        "RUNNING",
        f"It is running: attempt {attempt.attempt_number}{where} since {_when(situation, since)}.",
        "The end of the attempt.",
        f"Its lease lasts until {lease} and is extended while it runs.",
    )


def interrupted(situation: Situation) -> Answer | None:
    if situation.has_unfinished_attempt and situation.live is not None:
        lease = _when(situation, situation.live.row.at_us)
        return Answer(
            "INTERRUPTED",
            f"Its attempt was interrupted: the lease ended at {lease}, and no outcome was written.",
            _next_worker(situation),
            "The interruption is counted, and the next attempt begins at once.",
        )
    status = situation.status
    if status.state != action_pb2.RETRYING or status.last_attempt.outcome != Attempt.INTERRUPTION:
        return None
    when = _when(situation, us_of(status.last_attempt.end_time))
    return Answer(
        "INTERRUPTED",
        f"Its last attempt was interrupted at {when}: {_short(status.last_attempt.error)}.",
        _next_worker(situation) if situation.is_due else "The time of its next attempt.",
        f"The next attempt is planned for {_when(situation, situation.planned_us)}.",
    )


def no_worker(situation: Situation) -> Answer | None:
    if not situation.is_due or situation.is_any_worker_alive:
        return None
    last_us = max((lock.heartbeat_at_us for lock in situation.locks), default=0)
    sign = f"the last heartbeat was {relative_time(last_us, situation.now_us)}" if last_us else "none has ever worked"
    return Answer(
        "NO_WORKER",
        f"It is due since {_when(situation, situation.planned_us)} and no worker is alive: {sign}.",
        "A worker.",
        "It runs as soon as a worker starts: `clepsydra worker`.",
    )


def dead_worker(situation: Situation) -> Answer | None:
    lock = situation.shard_lock
    if not situation.is_due or lock is None or not lock.locked or situation.is_alive(lock):
        return None
    age = rounded_duration(situation.heartbeat_age_us(lock))
    return Answer(
        "DEAD_WORKER",
        f"It is due since {_when(situation, situation.planned_us)}, and shard {lock.shard_id} is locked by worker "
        f"{lock.locked_by}, which has given no sign of life for {age}.",
        f"Another worker that takes over shard {lock.shard_id}.",
        "Workers take over a lock whose heartbeat is older than `worker.lock_life_ms`.",
    )


def no_handler(situation: Situation) -> Answer | None:
    status = situation.status
    if status.state != action_pb2.RETRYING or not status.last_attempt.error.startswith(NO_HANDLER_ERROR):
        return None
    return Answer(
        "NO_HANDLER",
        f"The worker that tried it does not have its handler: {_short(status.last_attempt.error)}.",
        "A worker that has the handler, at the time of the next attempt.",
        f"The next attempt is planned for {_when(situation, situation.planned_us)}.",
    )


def retrying(situation: Situation) -> Answer | None:
    status = situation.status
    if status.state != action_pb2.RETRYING or situation.is_due:
        return None
    failures = status.occurrence.failed_attempts
    times = "once" if failures == 1 else f"{failures} times"
    return Answer(
        "RETRYING",
        f"It failed {times}; the next attempt is at {_when(situation, situation.planned_us)}.",
        "The time of its next attempt.",
        f"Attempt {failures + status.occurrence.interrupted_attempts + 1}. The last one failed: "
        f"{_short(status.last_attempt.error)}.",
    )


def due(situation: Situation) -> Answer | None:
    lock, live = situation.shard_lock, situation.live
    if not situation.is_due or lock is None or live is None:
        return None
    since = f"It is due since {_when(situation, situation.planned_us)}"
    if not lock.locked:
        return Answer(
            "DUE", f"{since} and no worker holds shard {lock.shard_id}.", "A worker that takes the shard.", _SOON
        )
    if live.row.queue is Queue.INCOMING:
        return Answer(
            "DUE",
            f"{since} and about to start: it has come into shard {lock.shard_id}, which worker {lock.locked_by} holds.",
            "The worker's next read of the shard.",
            _SOON,
        )
    return Answer(
        "DUE",
        f"{since} and about to start on worker {lock.locked_by}, which holds shard {lock.shard_id}.",
        "A place among the worker's attempts.",
        _SOON,
    )


def future(situation: Situation) -> Answer | None:
    waits_for = "Its time."
    if not situation.is_any_worker_alive:
        waits_for = "Its time; and a worker, because none is alive now."
    return Answer(
        "FUTURE", f"It waits for {_when(situation, situation.planned_us)}.", waits_for, "It runs when its time comes."
    )


# In this order.
REASONS: tuple[Reason, ...] = (
    deleted,
    unreadable,
    paused,
    expired,
    ended,
    without_row,
    running,
    no_worker,
    interrupted,
    no_handler,
    retrying,
    dead_worker,
    due,
    future,
)

_KNOWN_STATES = LIVE | {
    action_pb2.PAUSED,
    action_pb2.SUCCEEDED,
    action_pb2.FAILED,
    action_pb2.EXPIRED,
    action_pb2.CANCELLED,
    action_pb2.DELETED,
}
assert {*_KNOWN_STATES, action_pb2.STATE_UNSPECIFIED} == set(State.values()), "every state has its reason"

# A worker heartbeats every few seconds. One that was silent for this long is no longer believed to be alive.
_GIVEN_UP_US = 15_000_000
_SHOWN_LENGTH = 200
_SOON = "If it stays so, look at `clepsydra locks` and at the worker's log: all its places may be taken."


def answer(situation: Situation) -> Answer:
    for reason in REASONS:
        found = reason(situation)
        if found is not None:
            return found
    raise AssertionError("the last reason always holds")


def _when(situation: Situation, us: int) -> str:
    return time_and_distance(us, situation.now_us)


def _changed(situation: Situation) -> str:
    return _when(situation, us_of(situation.meta.update_time))


def _kept(situation: Situation) -> str:
    return f"Its record is kept until {_when(situation, kept_until_us(situation.spec, situation.status))}."


def _next_worker(situation: Situation) -> str:
    lock = situation.shard_lock
    shard = "its shard" if lock is None else f"shard {lock.shard_id}"
    if lock is not None and situation.is_alive(lock):
        return f"Worker {lock.locked_by}, which holds {shard}."
    return f"A worker that takes over {shard}."


def _short(error: str) -> str:
    line = " ".join(error.split())
    return line if len(line) <= _SHOWN_LENGTH else line[: _SHOWN_LENGTH - 1] + "…"
