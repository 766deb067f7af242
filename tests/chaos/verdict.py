"""The checker: judges the clients' history against the side log and the final tables.

It is asked when the faults are over, every client has ended and nothing is due any more. A call of unknown outcome
counts as either done, once and at any later time, or not done. Each rule below yields a sentence for each violation:

never lost          The last acknowledged create or update of an action is still its life, unless a call of unknown
                    outcome may have changed it. That life was carried out as often as was asked for, and each
                    success that is counted has its line in the side log. Only a periodic action may have given up a
                    run, for the next one, after an attempt that is counted as failed.
nothing left open   Whatever life an action has in the end, nothing is owed to it: it has ended, or is deleted.
never early         No execution starts before the time that its attempt was planned for, and no attempt is planned
                    before the time that its life's call asked for.
never begun twice   No attempt is executed twice: an attempt id starts once.
never accepted twice
                    No more successes are counted than runs were asked for, nor more than occurrences succeeded by the
                    side log; the last accepted outcome is that of the last attempt that ran.
counters add up     Every attempt that was executed is counted as succeeded, failed or interrupted.
changes take effect After an acknowledged change no attempt of the life before begins, so none starts that was planned
                    for later; the one that may have been in flight is all that can still start, once.
deleted stays so    What was acknowledged as deleted is deleted, and no replay brings it back.
nothing unasked     Every life in the side log and in the tables was made by a call: an acknowledged one, or one of
                    unknown outcome, each of which makes one life at most. Two calls never make the same life.
replays agree       The replay of an acknowledged call is answered with the life that the call made.
no false refusal    Clients call only what must succeed, so no call is refused for good.

What the rules cannot see is seen elsewhere: `clepsydra audit` after each kill, and how each process ended (run.py).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.history import Call, Kind, Outcome
from tests.chaos.side_log import Event, Line
from tests.chaos.tables import Entry


class Violation(NamedTuple):
    rule: str
    action_id: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.rule}: action {self.action_id}: {self.sentence}"


class Story(NamedTuple):
    """All that is known of one action."""

    action_id: str
    # In the order in which its client made them, one after the other.
    calls: Sequence[Call]
    lines: Sequence[Line]
    entry: Entry | None

    @property
    def acknowledged(self) -> list[Call]:
        return [call for call in self.calls if call.outcome is Outcome.OK]

    @property
    def unknown(self) -> list[Call]:
        return [call for call in self.calls if call.outcome is Outcome.UNKNOWN]

    @property
    def last(self) -> Call | None:
        """The last acknowledged change."""
        acknowledged = self.acknowledged
        return acknowledged[-1] if acknowledged else None

    @property
    def lives(self) -> dict[str, Call]:
        """The lives that are known by an acknowledgement."""
        return {call.guid: call for call in self.acknowledged if call.kind is not Kind.DELETE}

    def lines_of(self, guid: str, event: Event) -> list[Line]:
        return [line for line in self.lines if line.event is event and line.guid == guid]


Rule = Callable[[Story], Iterator[str]]


def judge(calls: Iterable[Call], lines: Iterable[Line], entries: Mapping[str, Entry]) -> list[Violation]:
    """Every violation of every rule; none is the sign of success."""
    return [
        Violation(name, story.action_id, sentence)
        for story in stories(calls, lines, entries)
        for name, rule in RULES.items()
        for sentence in rule(story)
    ]


def stories(calls: Iterable[Call], lines: Iterable[Line], entries: Mapping[str, Entry]) -> Iterator[Story]:
    calls_of: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        calls_of[call.action_id].append(call)
    lines_of: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        lines_of[line.action_id].append(line)
    for action_id in {**calls_of, **lines_of, **entries}:
        yield Story(
            action_id,
            sorted(calls_of[action_id], key=lambda call: call.invoked_us),
            sorted(lines_of[action_id], key=lambda line: line.at_us),
            entries.get(action_id),
        )


def never_lost(story: Story) -> Iterator[str]:
    last, entry = story.last, story.entry
    if last is None or last.kind is Kind.DELETE:
        return
    if entry is None:
        if not any(call.kind is Kind.DELETE for call in story.unknown):
            yield f"its {last.kind} {last.request_id} was acknowledged, and it is gone"
        return
    if entry.guid != last.guid:
        if not story.unknown:
            yield f"its {last.kind} {last.request_id} was acknowledged, and it has another life, {entry.guid}"
        return
    given_up = last.runs - entry.succeeded
    if entry.runs < last.runs or given_up > (entry.failed if last.runs > 1 else 0):
        yield f"it is {entry.state} with {entry.runs} runs and {entry.succeeded} successes, of {last.runs} asked for"
    executed = {line.idempotency_key for line in story.lines_of(last.guid, Event.SUCCEEDED)}
    if len(executed) < last.runs - given_up:
        yield f"{entry.succeeded} successes are counted, and only {len(executed)} occurrences were executed"


def nothing_left_open(story: Story) -> Iterator[str]:
    entry = story.entry
    if entry is None or entry.state in ("SUCCEEDED", "DELETED"):
        return
    if entry.state != "FAILED" or entry.runs < 2 or entry.failed == 0:
        yield f"in the end it is {entry.state}"


def never_early(story: Story) -> Iterator[str]:
    lives = story.lives
    for line in story.lines:
        if line.event is not Event.STARTED:
            continue
        if line.at_us < line.due_us:
            yield f"attempt {line.attempt_id} started {line.due_us - line.at_us} us before its time"
        call = lives.get(line.guid)
        if call is not None and line.due_us < call.due_us:
            yield f"attempt {line.attempt_id} was planned {call.due_us - line.due_us} us before what was asked for"


def never_begun_twice(story: Story) -> Iterator[str]:
    starts = Counter(line.attempt_id for line in story.lines if line.event is Event.STARTED)
    for attempt_id, count in starts.items():
        if count > 1:
            yield f"attempt {attempt_id} started {count} times"


def never_accepted_twice(story: Story) -> Iterator[str]:
    entry = story.entry
    if entry is None or entry.state == "DELETED":
        return
    call = story.lives.get(entry.guid)
    if call is not None and entry.runs > call.runs:
        yield f"{entry.runs} runs are counted, {call.runs} were asked for"
    succeeded = story.lines_of(entry.guid, Event.SUCCEEDED)
    occurrences = {line.idempotency_key for line in succeeded}
    if entry.succeeded > len(occurrences):
        yield f"{entry.succeeded} successes are counted, {len(occurrences)} occurrences succeeded"
    if entry.state != "SUCCEEDED":
        return
    if entry.last_attempt_id not in {line.attempt_id for line in succeeded}:
        yield f"the success of attempt {entry.last_attempt_id} was accepted, and it never succeeded"
    occurrence = entry.last_attempt_id.rpartition("-")[0]
    for line in story.lines_of(entry.guid, Event.STARTED):
        if line.attempt_id.rpartition("-")[0] == occurrence and line.number > entry.last_number:
            yield f"attempt {line.attempt_id} started, and the outcome of number {entry.last_number} was accepted"


def counters_add_up(story: Story) -> Iterator[str]:
    entry = story.entry
    if entry is None or entry.state == "DELETED":
        return
    started = {line.attempt_id for line in story.lines_of(entry.guid, Event.STARTED)}
    counted = entry.succeeded + entry.failed + entry.interrupted
    if len(started) > counted:
        yield f"{len(started)} attempts were executed, {counted} are counted"


def changes_take_effect(story: Story) -> Iterator[str]:
    acknowledged = story.acknowledged
    for before, change in pairwise(acknowledged):
        if before.kind is Kind.DELETE:
            continue
        late = [line for line in story.lines_of(before.guid, Event.STARTED) if line.at_us > change.ended_us]
        for line in late:
            if line.due_us > change.ended_us:
                yield f"attempt {line.attempt_id} began after {change.kind} {change.request_id} was acknowledged"
        if len(late) > 1:
            yield f"{len(late)} attempts started after {change.kind} {change.request_id} was acknowledged"


def deleted_stays_so(story: Story) -> Iterator[str]:
    last, entry = story.last, story.entry
    if last is None or last.kind is not Kind.DELETE or story.unknown:
        return
    if entry is not None and entry.state != "DELETED":
        yield f"its delete {last.request_id} was acknowledged, and it is {entry.state}"


def nothing_unasked(story: Story) -> Iterator[str]:
    acknowledged = Counter(call.guid for call in story.acknowledged if call.kind is not Kind.DELETE)
    for guid, count in acknowledged.items():
        if count > 1:
            yield f"{count} calls made the same life {guid}"
    executed = {line.guid for line in story.lines} - acknowledged.keys()
    makers = sum(call.kind is not Kind.DELETE for call in story.unknown)
    if len(executed) > makers:
        yield f"lives {sorted(executed)} were executed, and {makers} calls can have made them"
    entry = story.entry
    if entry is None or entry.guid in acknowledged:
        return
    if entry.state == "DELETED":
        if not any(call.kind is Kind.DELETE for call in (*story.acknowledged, *story.unknown)):
            yield "it is deleted, and nobody asked for that"
    elif makers == 0:
        yield f"it has the life {entry.guid}, which no call made"


def repeated_calls_agree(story: Story) -> Iterator[str]:
    for call in story.acknowledged:
        for guid in call.replayed_guids:
            if guid != call.guid:
                yield f"{call.kind} {call.request_id} made the life {call.guid}, and its replay was told {guid}"


def no_false_refusal(story: Story) -> Iterator[str]:
    for call in story.calls:
        if call.outcome is Outcome.REFUSED:
            yield f"{call.kind} {call.request_id} was refused after {call.tries} tries: {call.error}"


RULES: dict[str, Rule] = {
    "never lost": never_lost,
    "nothing left open": nothing_left_open,
    "never early": never_early,
    "never begun twice": never_begun_twice,
    "never accepted twice": never_accepted_twice,
    "counters add up": counters_add_up,
    "changes take effect": changes_take_effect,
    "deleted stays so": deleted_stays_so,
    "nothing unasked": nothing_unasked,
    "replays agree": repeated_calls_agree,
    "no false refusal": no_false_refusal,
}
