"""The checker itself: a history in which all is well passes, and every broken promise is found by its rule."""

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from tests.chaos.history import Call, Kind, Outcome
from tests.chaos.side_log import Event, Line
from tests.chaos.tables import Entry
from tests.chaos.verdict import RULES, judge

SECOND = 1_000_000
DUE = 100 * SECOND


@dataclasses.dataclass
class Known:
    """What the checker is given of one action."""

    calls: list[Call]
    lines: list[Line]
    entry: Entry | None

    def broken_rules(self) -> set[str]:
        entries = {} if self.entry is None else {"a": self.entry}
        return {violation.rule for violation in judge(self.calls, self.lines, entries)}


def called(kind: Kind, guid: str, at_us: int, outcome: Outcome = Outcome.OK, runs: int = 1) -> Call:
    runs, due_us = (0, 0) if kind is Kind.DELETE else (runs, DUE)
    ended_us = 0 if outcome is Outcome.UNKNOWN else at_us + 1000
    guid = guid if outcome is Outcome.OK else ""
    return Call(f"{kind}@{at_us}", kind, "a", at_us, due_us, runs, outcome, ended_us, guid, tries=1)


def created(guid: str = "g1", runs: int = 1, outcome: Outcome = Outcome.OK) -> Call:
    return called(Kind.CREATE, guid, 90 * SECOND, outcome, runs)


def line(event: Event, at_us: int, guid: str = "g1", number: int = 1, occurrence: int = DUE) -> Line:
    key = f"{guid}-{occurrence}"
    return Line(event, "a", key, f"{key}-{number}", number, 1, at_us, occurrence, at_us - 1000)


def executed(at_us: int, guid: str = "g1", number: int = 1, occurrence: int = DUE) -> list[Line]:
    return [
        line(Event.STARTED, at_us, guid, number, occurrence),
        line(Event.SUCCEEDED, at_us + 2000, guid, number, occurrence),
    ]


def entry(
    guid: str = "g1",
    state: str = "SUCCEEDED",
    succeeded: int = 1,
    interrupted: int = 0,
    failed: int = 0,
    runs: int | None = None,
    last_number: int = 1,
    occurrence: int = DUE,
) -> Entry:
    last = f"{guid}-{occurrence}-{last_number}"
    return Entry(guid, state, succeeded, failed, interrupted, succeeded if runs is None else runs, last, last_number)


def done_once() -> Known:
    return Known([created()], executed(DUE + 5), entry())


def interrupted_and_done() -> Known:
    """The first attempt was cut short, and its worker woke up after the second one had succeeded."""
    lines = [*executed(DUE + 5 * SECOND, number=2), *executed(DUE + 6 * SECOND, number=1)]
    return Known([created()], lines, entry(interrupted=1, last_number=2))


def periodic() -> Known:
    lines = [*executed(DUE), *executed(DUE + SECOND, occurrence=DUE + SECOND)]
    return Known([created(runs=2)], lines, entry(succeeded=2, occurrence=DUE + SECOND))


def periodic_that_gave_up_its_last_run() -> Known:
    lines = [*executed(DUE), line(Event.STARTED, DUE + SECOND, occurrence=DUE + SECOND)]
    return Known([created(runs=2)], lines, entry(state="FAILED", succeeded=1, failed=1, runs=2))


def updated() -> Known:
    """The first life's attempt was in flight when the update was acknowledged, and started a little later."""
    update = called(Kind.UPDATE, "g2", DUE + SECOND)
    late = line(Event.STARTED, update.ended_us + 500)
    return Known([created(), update], [late, *executed(DUE + 2 * SECOND, "g2")], entry("g2"))


def deleted() -> Known:
    return Known([created(), called(Kind.DELETE, "", 95 * SECOND)], [], entry("t1", "DELETED", 0))


def deleted_and_purged() -> Known:
    return Known(deleted().calls, [], None)


def unknown_create_that_was_done() -> Known:
    return Known([created(outcome=Outcome.UNKNOWN)], executed(DUE), entry())


def unknown_create_that_was_not_done() -> Known:
    return Known([created(outcome=Outcome.UNKNOWN)], [], None)


def unknown_update_that_was_done() -> Known:
    unknown = called(Kind.UPDATE, "", 95 * SECOND, Outcome.UNKNOWN)
    return Known([created(), unknown], executed(DUE, "g2"), entry("g2"))


def unknown_update_that_was_not_done() -> Known:
    return Known([created(), called(Kind.UPDATE, "", 95 * SECOND, Outcome.UNKNOWN)], executed(DUE), entry())


def unknown_delete_that_was_done() -> Known:
    unknown = called(Kind.DELETE, "", 95 * SECOND, Outcome.UNKNOWN)
    return Known([created(), unknown], [], entry("t1", "DELETED", 0))


def not_done_at_all() -> Known:
    return Known([created(outcome=Outcome.NOT_DONE)], [], None)


GOOD = (
    done_once,
    interrupted_and_done,
    periodic,
    periodic_that_gave_up_its_last_run,
    updated,
    deleted,
    deleted_and_purged,
    unknown_create_that_was_done,
    unknown_create_that_was_not_done,
    unknown_update_that_was_done,
    unknown_update_that_was_not_done,
    unknown_delete_that_was_done,
    not_done_at_all,
)


@pytest.mark.parametrize("known", GOOD)
def test_what_is_promised_is_no_violation(known: Callable[[], Known]) -> None:
    assert known().broken_rules() == set()


def changed(known: Known, **fields: object) -> Known:
    return dataclasses.replace(known, **fields)  # type: ignore[arg-type]


def with_entry(known: Known, **fields: object) -> Known:
    assert known.entry is not None
    return changed(known, entry=known.entry._replace(**fields))  # type: ignore[arg-type]


def replayed(known: Known, guid: str) -> Known:
    known.calls[0].replayed_guids.append(guid)
    return known


def begun_after_the_update() -> Known:
    known = updated()
    update = known.calls[1]
    late = line(Event.STARTED, update.ended_us + 5000, occurrence=update.ended_us + 1)
    return changed(known, lines=[late, *known.lines[1:]])


def started_twice_after_the_update() -> Known:
    """Each by itself might have been in flight."""
    known = updated()
    return changed(known, lines=[known.lines[0], known.lines[0]._replace(attempt_id="g1-0-2"), *known.lines[1:]])


def made_the_same_life_again() -> Known:
    known = updated()
    known.calls[1].guid = "g1"
    return with_entry(changed(known, lines=executed(DUE)), guid="g1")


BAD: Sequence[tuple[str, str, Callable[[], Known]]] = (
    ("never lost", "the action is gone", lambda: changed(done_once(), entry=None)),
    ("never lost", "it never ran", lambda: changed(done_once(), lines=[])),
    ("never lost", "it was given up", lambda: with_entry(done_once(), state="FAILED", succeeded=0, failed=3)),
    ("never lost", "a run is missing", lambda: with_entry(periodic(), runs=1, succeeded=1)),
    ("never lost", "a run was given up without a failure", lambda: with_entry(periodic(), succeeded=1)),
    ("never lost", "another life has taken its place", lambda: with_entry(done_once(), guid="g9")),
    ("never lost", "an unknown update does not remove", lambda: changed(unknown_update_that_was_done(), entry=None)),
    ("nothing left open", "it still waits", lambda: with_entry(done_once(), state="RETRYING", succeeded=0, runs=0)),
    (
        "nothing left open",
        "what an unknown call made still waits",
        lambda: with_entry(unknown_create_that_was_done(), state="SCHEDULED"),
    ),
    ("never early", "it started early", lambda: changed(done_once(), lines=executed(DUE - 1))),
    (
        "never early",
        "it was planned early",
        lambda: changed(done_once(), lines=executed(DUE, occurrence=DUE - SECOND)),
    ),
    (
        "never begun twice",
        "two workers ran one attempt",
        lambda: changed(done_once(), lines=[*executed(DUE), *executed(DUE + 9)]),
    ),
    ("never accepted twice", "two successes of one run", lambda: with_entry(done_once(), succeeded=2)),
    ("never accepted twice", "more runs than were asked for", lambda: with_entry(done_once(), runs=2)),
    (
        "never accepted twice",
        "a success that never was",
        lambda: with_entry(interrupted_and_done(), last_attempt_id=f"g1-{DUE}-3"),
    ),
    (
        "never accepted twice",
        "an attempt that was superseded had its outcome accepted",
        lambda: with_entry(interrupted_and_done(), last_number=1, last_attempt_id=f"g1-{DUE}-1"),
    ),
    ("counters add up", "an attempt is not counted", lambda: with_entry(interrupted_and_done(), interrupted=0)),
    ("changes take effect", "an attempt began after the update", begun_after_the_update),
    ("changes take effect", "two attempts started after the update", started_twice_after_the_update),
    ("deleted stays so", "it came back to life", lambda: changed(deleted(), entry=entry("g9"), lines=[])),
    ("nothing unasked", "nobody knows this life", lambda: changed(done_once(), lines=executed(DUE, "g9"))),
    ("nothing unasked", "nobody knows this action", lambda: Known([], executed(DUE), None)),
    ("nothing unasked", "nobody deleted it", lambda: with_entry(done_once(), guid="t1", state="DELETED")),
    ("nothing unasked", "what was not done was done", lambda: changed(not_done_at_all(), lines=executed(DUE))),
    ("nothing unasked", "what was not done is there", lambda: changed(not_done_at_all(), entry=entry())),
    (
        "nothing unasked",
        "one unknown call made two lives",
        lambda: changed(unknown_create_that_was_done(), lines=[*executed(DUE), *executed(DUE, "g2")]),
    ),
    ("nothing unasked", "two calls made one life", made_the_same_life_again),
    ("replays agree", "a replay made another life", lambda: replayed(done_once(), "g2")),
    (
        "no false refusal",
        "a create was refused",
        lambda: changed(not_done_at_all(), calls=[created(outcome=Outcome.REFUSED)]),
    ),
)


@pytest.mark.parametrize(("rule", "known"), [(rule, known) for rule, _, known in BAD], ids=[what for _, what, _ in BAD])
def test_each_broken_promise_is_found(rule: str, known: Callable[[], Known]) -> None:
    assert rule in known().broken_rules()


def test_every_rule_is_tested() -> None:
    assert {rule for rule, _, _ in BAD} == set(RULES)


def test_a_faithful_replay_is_no_violation() -> None:
    assert replayed(done_once(), "g1").broken_rules() == set()
