"""What the paths of a mask do to a spec."""

from clepsydra.core.action.update_mask import merge_spec, updates_spec
from clepsydra.core.times import SECOND_US, duration
from clepsydra.v1.action_pb2 import HttpRequest, LogLine, RetryPolicy, Schedule, Spec


def merged(stored: Spec, given: Spec, *paths: str) -> Spec:
    merge_spec(stored, given, paths)
    return stored


def test_what_is_set_replaces_and_what_is_not_set_clears() -> None:
    stored = Spec(retry=RetryPolicy(max_attempts=3, jitter=0.5), attempt_timeout=duration(SECOND_US))
    given = Spec(retry=RetryPolicy(max_attempts=0))

    assert merged(stored, given, "spec.retry.max_attempts", "spec.retry.jitter") == Spec(
        retry=RetryPolicy(max_attempts=0), attempt_timeout=duration(SECOND_US)
    )


def test_a_message_is_replaced_not_merged() -> None:
    """Else a duration of a minute and one of half a second would make a minute and a half second."""
    stored = Spec(attempt_timeout=duration(60 * SECOND_US))

    after = merged(stored, Spec(attempt_timeout=duration(SECOND_US // 2)), "spec.attempt_timeout")

    assert after == Spec(attempt_timeout=duration(SECOND_US // 2))


def test_to_clear_a_field_of_what_is_not_there_makes_nothing() -> None:
    stored = Spec(log=LogLine(message="x"))

    after = merged(stored, Spec(), "spec.http.url", "spec.retry.jitter", "spec.handler", "spec.schedule.periodic.mode")

    assert after == Spec(log=LogLine(message="x"))


def test_a_field_of_another_target_changes_the_target() -> None:
    after = merged(Spec(log=LogLine()), Spec(http=HttpRequest(url="http://a/", body=b"x")), "spec.http.url")

    assert after == Spec(http=HttpRequest(url="http://a/"))


def test_a_delay_takes_the_place_of_a_start_time() -> None:
    stored = Spec(schedule=Schedule(start_time={"seconds": 5}, once={}))

    after = merged(stored, Spec(schedule=Schedule(delay=duration(SECOND_US))), "spec.schedule.delay")

    assert after == Spec(schedule=Schedule(delay=duration(SECOND_US), once={}))


def test_lists_are_taken_whole() -> None:
    stored = Spec(http=HttpRequest(headers=[{"name": "A"}, {"name": "B"}]))

    after = merged(stored, Spec(http=HttpRequest(headers=[{"name": "C"}])), "spec.http.headers")

    assert [header.name for header in after.http.headers] == ["C"]


def test_only_labels_leave_the_life_alone() -> None:
    assert not updates_spec(["meta.labels"])
    assert updates_spec(["meta.labels", "spec.retry"])
    assert updates_spec(["spec"])
