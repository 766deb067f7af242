"""Every field of every request beside the spec, and what can only be told when the time is known."""

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from clepsydra.core import limits
from clepsydra.core.action import spec as action_spec
from clepsydra.core.action.spec import timing_violations
from clepsydra.core.times import END_OF_TIME_US, HOUR_US, SECOND_US, YEAR_US, duration, timestamp
from clepsydra.core.validation.requests import violations_of
from clepsydra.core.validation.rules import under
from clepsydra.v1.action_pb2 import Periodic, Schedule, Spec
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchDeleteActionsRequest,
    CreateActionRequest,
    DeleteActionRequest,
    GetActionRequest,
    ListActionsRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)
from tests.unit.specs import filled_in

# 2026-01-01T12:00:00Z
NOON_US = 1_767_268_800 * SECOND_US

NAMING_BY_ID = [GetActionRequest, DeleteActionRequest, PauseActionRequest, ResumeActionRequest, RunActionRequest]
CHANGING = [DeleteActionRequest, PauseActionRequest, ResumeActionRequest, RunActionRequest]


def paths_of(request: Any) -> list[str]:
    return [violation.path for violation in violations_of(request)]


def create(**meta: Any) -> CreateActionRequest:
    return CreateActionRequest(action={"meta": meta, "spec": {"log": {}}})


def update(*paths: str, **fields: Any) -> UpdateActionRequest:
    action = {"meta": {"id": "a"}, "spec": {"log": {}}}
    return UpdateActionRequest(**{"action": action, "update_mask": FieldMask(paths=paths), **fields})


@pytest.mark.parametrize("kind", NAMING_BY_ID)
@pytest.mark.parametrize("action_id", ["!", "~", "a/b:c", "x" * limits.ID_LENGTH])
def test_ids_are_visible_ascii(kind: Any, action_id: str) -> None:
    assert paths_of(kind(id=action_id)) == []


@pytest.mark.parametrize("kind", NAMING_BY_ID)
@pytest.mark.parametrize("action_id", ["", " ", "a b", "a\n", "\x7f", "ä", "x" * (limits.ID_LENGTH + 1)])
def test_other_ids_are_refused(kind: Any, action_id: str) -> None:
    assert paths_of(kind(id=action_id)) == ["id"]


def test_only_a_creation_may_leave_the_id_out() -> None:
    assert paths_of(create()) == []
    assert paths_of(create(id="x" * limits.ID_LENGTH)) == []
    assert paths_of(create(id="x" * (limits.ID_LENGTH + 1))) == ["action.meta.id"]
    assert paths_of(update(action={"meta": {}, "spec": {"log": {}}})) == ["action.meta.id"]
    assert paths_of(update(action={"spec": {"log": {}}})) == ["action.meta"]


def test_a_request_without_its_action_says_so() -> None:
    assert paths_of(CreateActionRequest()) == ["action"]
    assert paths_of(CreateActionRequest(action={})) == ["action.spec"]
    assert paths_of(UpdateActionRequest()) == ["action"]
    assert paths_of(UpdateActionRequest(action={"meta": {"id": "a"}})) == ["action.spec"]


@pytest.mark.parametrize("kind", CHANGING)
def test_etags_and_request_ids_have_limits(kind: Any) -> None:
    assert paths_of(kind(id="a", etag="e" * limits.ETAG_LENGTH, request_id="r" * limits.REQUEST_ID_LENGTH)) == []
    assert paths_of(kind(id="a", etag="e" * (limits.ETAG_LENGTH + 1))) == ["etag"]
    assert paths_of(kind(id="a", etag="é")) == ["etag"]
    assert paths_of(kind(id="a", request_id="r" * (limits.REQUEST_ID_LENGTH + 1))) == ["request_id"]
    assert paths_of(kind(id="a", request_id="a b")) == ["request_id"]


def test_creations_and_updates_have_the_same_limits_on_etags_and_request_ids() -> None:
    assert paths_of(update(etag="e" * (limits.ETAG_LENGTH + 1))) == ["etag"]
    assert paths_of(update(request_id="r" * (limits.REQUEST_ID_LENGTH + 1))) == ["request_id"]
    assert paths_of(CreateActionRequest(action={"spec": {"log": {}}}, request_id="r" * limits.REQUEST_ID_LENGTH)) == []
    assert paths_of(
        CreateActionRequest(action={"spec": {"log": {}}}, request_id="r" * (limits.REQUEST_ID_LENGTH + 1))
    ) == ["request_id"]


@pytest.mark.parametrize(
    "labels",
    [
        {"a": ""},
        {"team": "ä ß 日本"},
        {"x" * limits.LABEL_KEY_LENGTH: "y" * limits.LABEL_VALUE_LENGTH},
        {"example.com/Team_1-a": "x"},
        {f"key-{n}": "" for n in range(limits.LABELS)},
    ],
)
def test_labels_within_their_limits(labels: dict[str, str]) -> None:
    assert paths_of(create(labels=labels)) == []


@pytest.mark.parametrize(
    ("labels", "path"),
    [
        ({"": "x"}, '[""]'),
        ({"a b": "x"}, '["a b"]'),
        ({"-a": "x"}, '["-a"]'),
        ({"ä": "x"}, '["ä"]'),
        ({"x" * (limits.LABEL_KEY_LENGTH + 1): "x"}, f'["{"x" * 31}…"]'),
        ({"a": "y" * (limits.LABEL_VALUE_LENGTH + 1)}, '["a"]'),
        ({"a": "line\nbreak"}, '["a"]'),
        ({f"key-{n}": "" for n in range(limits.LABELS + 1)}, ""),
    ],
)
def test_labels_beyond_their_limits(labels: dict[str, str], path: str) -> None:
    assert paths_of(create(labels=labels)) == [f"action.meta.labels{path}"]
    assert paths_of(update(action={"meta": {"id": "a", "labels": labels}, "spec": {"log": {}}})) == [
        f"action.meta.labels{path}"
    ]


def test_what_the_scheduler_writes_itself_is_ignored_so_that_an_action_can_be_sent_back() -> None:
    request = create(id="a", guid="?" * 999, revision=-1, etag="?" * 999, applied_requests=[{}])
    request.action.meta.create_time.seconds = -1
    request.action.status.reason = "?"

    assert violations_of(request) == ()


def test_pages_have_limits() -> None:
    assert paths_of(ListActionsRequest()) == []
    assert paths_of(ListActionsRequest(page_size=limits.PAGE_SIZE_MAX, page_token="t" * limits.PAGE_TOKEN_LENGTH)) == []
    assert paths_of(ListActionsRequest(page_size=limits.PAGE_SIZE_MAX + 1)) == ["page_size"]
    assert paths_of(ListActionsRequest(page_size=-1)) == ["page_size"]
    assert paths_of(ListActionsRequest(page_token="t" * (limits.PAGE_TOKEN_LENGTH + 1))) == ["page_token"]


@pytest.mark.parametrize("kind", [BatchCreateActionsRequest, BatchDeleteActionsRequest])
def test_batches_have_limits_and_their_items_are_not_looked_at(kind: Any) -> None:
    assert paths_of(kind(requests=[{}] * limits.BATCH_ITEMS)) == []
    assert paths_of(kind(requests=[{}] * (limits.BATCH_ITEMS + 1))) == ["requests"]


def test_an_item_of_a_batch_is_named_by_its_place() -> None:
    [violation] = under("requests[3]", violations_of(CreateActionRequest(action={"spec": {}})))

    assert violation.path == "requests[3].action.spec.target"


GOOD_PATHS = [
    "spec",
    "spec.schedule",
    "spec.schedule.delay",
    "spec.schedule.periodic.max_runs",
    "spec.retry.max_attempts",
    "spec.attempt_timeout",
    "spec.http",
    "spec.http.url",
    "spec.http.headers",
    "spec.handler.payload",
    "meta.labels",
]


def test_masks_name_fields_at_any_depth() -> None:
    assert violations_of(update(*GOOD_PATHS)) == ()
    assert violations_of(update(*["spec"] * limits.UPDATE_MASK_PATHS)) == ()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("meta.guid", "output only"),
        ("meta.etag", "output only"),
        ("meta", "output only"),
        ("meta.applied_requests", "output only"),
        ("status", "output only"),
        ("status.counters.runs", "output only"),
        ("meta.id", "never changes"),
        ("", "not a field"),
        ("spec.", "not a field"),
        (".spec", "not a field"),
        ("*", "not a field"),
        ("spec.nothing", "not a field"),
        ("spec.target", "not a field"),
        ("spec.attempt_timeout.seconds", "not a field"),
        ("spec.http.headers.name", "not a field"),
        ("spec.http.url.host", "not a field"),
        ("meta.labels.team", "not a field"),
        ("spec.maxAttempts", "not a field"),
        ("spec" + ".schedule" * 1000, "not a field"),
    ],
)
def test_masks_name_nothing_else(path: str, words: str) -> None:
    [violation] = violations_of(update("spec.retry", path))

    assert violation.path == "update_mask.paths[1]"
    assert words in violation.description
    assert repr(path[:200])[:-1] in violation.description


def test_masks_have_a_length() -> None:
    assert paths_of(update(*["spec"] * (limits.UPDATE_MASK_PATHS + 1))) == ["update_mask.paths"]


def test_a_partial_update_is_not_asked_for_a_whole_spec() -> None:
    partial = {"meta": {"id": "a"}, "spec": {"http": {"body": b"x"}}}

    assert paths_of(update("spec.http.body", action=partial)) == []
    assert paths_of(update(action=partial)) == ["action.spec.http.url"]


def timing(spec: Spec, now_us: int = NOON_US) -> list[str]:
    given = spec.schedule.WhichOneof("start")
    return [violation.path for violation in timing_violations(filled_in(spec, now_us).schedule, given, now_us)]


def test_a_delay_must_not_lead_beyond_the_end_of_time() -> None:
    late_us = END_OF_TIME_US - YEAR_US

    assert timing(Spec(schedule=Schedule(delay=duration(YEAR_US - 1))), late_us) == []
    assert timing(Spec(schedule=Schedule(delay=duration(YEAR_US))), late_us) == ["action.spec.schedule.delay"]


def test_a_periodic_action_must_have_an_occurrence_before_its_end() -> None:
    def ending(end_us: int, mode: Periodic.Mode, start_us: int) -> Spec:
        periodic = Periodic(interval=duration(HOUR_US), mode=mode, end_time=timestamp(end_us))
        return Spec(schedule=Schedule(start_time=timestamp(start_us), periodic=periodic))

    end = ["action.spec.schedule.periodic.end_time"]
    later_us = NOON_US + HOUR_US
    assert timing(ending(later_us, Periodic.FIXED_RATE, later_us)) == []
    assert timing(ending(later_us - 1, Periodic.FIXED_RATE, later_us)) == end
    # On a grid that began before now, the next point counts; without a grid, it is now.
    earlier_us = NOON_US - HOUR_US // 2
    assert timing(ending(earlier_us + HOUR_US, Periodic.FIXED_RATE, earlier_us)) == []
    assert timing(ending(earlier_us + HOUR_US - 1, Periodic.FIXED_RATE, earlier_us)) == end
    assert timing(ending(NOON_US, Periodic.DRIFT, earlier_us)) == []
    assert timing(ending(NOON_US - 1, Periodic.DRIFT, earlier_us)) == end


def test_a_grid_must_have_a_point_before_the_end_of_time() -> None:
    spec = Spec(schedule=Schedule(periodic=Periodic(interval=duration(action_spec.INTERVAL_MAX_US))))
    spec.schedule.start_time.CopyFrom(timestamp(END_OF_TIME_US - 2 * YEAR_US))

    assert timing(spec, END_OF_TIME_US - YEAR_US) == ["action.spec.schedule.start_time"]
