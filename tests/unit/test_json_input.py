"""Reading actions in JSON: the fast way and protobuf's parser agree, on what they accept and on what they refuse."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from clepsydra.core.times import timestamp
from clepsydra.tools.format.json_input import parse_message
from clepsydra.tools.format.json_output import message_line
from clepsydra.v1.action_pb2 import ScheduledAction
from tests.unit.specs import NOON_US

ACTION = ScheduledAction(
    meta={"id": "a", "revision": 2**40, "labels": {"team": "ops", "": ""}, "create_time": timestamp(NOON_US + 1)},
    spec={
        "schedule": {"start_time": timestamp(NOON_US), "periodic": {"interval": {"seconds": 3, "nanos": 5_000_000}}},
        "retry": {"multiplier": 1.5, "jitter": 0, "max_attempts": 0},
        "handler": {"name": "h", "payload": bytes(range(256)), "content_type": "a/b"},
    },
    status={
        "state": "RETRYING",
        "scheduled_time": timestamp(NOON_US + 1000),
        "counters": {"runs": 2**60},
        "attempts": [{"number": 1, "error": "ä\x00\n", "outcome": "FAILURE"}, {}],
        "occurrence": {},
    },
)


@pytest.fixture
def no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any) -> Any:
        raise AssertionError("protobuf's parser was asked")

    monkeypatch.setattr(json_format, "Parse", fail)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize(
    "action",
    [
        ACTION,
        ScheduledAction(),
        ScheduledAction(spec={"schedule": {"once": {}}, "log": {}}),
        ScheduledAction(spec={"http": {"url": "u", "headers": [{"name": "a", "value": "b"}], "body": b""}}),
    ],
)
def test_what_our_commands_write_is_read_the_fast_way(action: ScheduledAction) -> None:
    assert parse_message(message_line(action), ScheduledAction) == action


OTHER = [
    '{"meta": {"id": "a"}, "meta": {"id": "b"}}',
    '{"meta": {"createTime": "2026-01-01T00:00:00Z"}}',
    '{"meta": {"create_time": "2026-01-01T00:00:00+02:00"}}',
    '{"meta": {"create_time": "2026-01-01T00:00:00.123456789Z"}}',
    '{"meta": {"create_time": "2026-13-01T00:00:00Z"}}',
    '{"meta": {"create_time": "2026-01-01t00:00:00Z"}}',
    '{"meta": {"create_time": "2026-W01-1T00:00:00Z"}}',
    '{"meta": {"create_time": "0000-01-01T00:00:00Z"}}',
    '{"meta": {"create_time": 7}}',
    '{"meta": {"id": null, "labels": null}}',
    '{"meta": {"id": 7}}',
    '{"meta": {"labels": {"a": 7}}}',
    '{"meta": {"revision": 7}}',
    '{"meta": {"revision": "-7"}}',
    '{"meta": {"revision": "7.0"}}',
    '{"meta": {"revision": "99999999999999999999"}}',
    '{"meta": {"unknown": 1}}',
    '{"meta": []}',
    '{"spec": {"retry": {"multiplier": "Infinity", "max_attempts": 1.0}}}',
    '{"spec": {"retry": {"max_attempts": "3"}}}',
    '{"spec": {"retry": {"max_attempts": true}}}',
    '{"spec": {"retry": {"max_attempts": -1}}}',
    '{"spec": {"retry": {"multiplier": NaN}}}',
    '{"spec": {"retry": {"first_delay": "1.5s"}}}',
    '{"spec": {"retry": {"first_delay": "-1s"}}}',
    '{"spec": {"retry": {"first_delay": "1e3s"}}}',
    '{"spec": {"retry": {"first_delay": "s"}}}',
    '{"spec": {"retry": {"first_delay": ".5s"}}}',
    '{"spec": {"retry": {"first_delay": "1.s"}}}',
    '{"spec": {"handler": {"payload": "YQ"}}}',
    '{"spec": {"handler": {"payload": "_-8="}}}',
    '{"spec": {"handler": {"payload": "!!"}}}',
    '{"spec": {"log": {}, "http": {}}}',
    '{"status": {"state": 2}}',
    '{"status": {"state": "NO_SUCH_STATE"}}',
    '{"status": {"attempts": {}}}',
    "[]",
    "null",
    '"a"',
    "{",
    "",
    '{"meta": {"id": "\\ud800"}}',
]


@pytest.mark.parametrize("text", OTHER)
def test_other_spellings_are_decided_by_protobufs_parser(text: str) -> None:
    _agree(text)


def _agree(text: str) -> None:
    try:
        expected = json_format.Parse(text, ScheduledAction())
    except (json_format.ParseError, ValueError, TypeError, AttributeError) as error:
        with pytest.raises(type(error)):
            parse_message(text.encode(), ScheduledAction)
    else:
        assert parse_message(text.encode(), ScheduledAction) == expected


_LEAVES: list[Any] = [None, True, 0, 1, -1, 1.5, "", "7", "a", "1s", "0.5s", "2026-01-01T00:00:00Z", "AAAA", [], {}]


@given(st.data())
def test_whatever_is_changed_in_a_line_both_agree(data: Any) -> None:
    fields = json.loads(message_line(ACTION))
    part: Any = fields
    while True:
        key = data.draw(st.sampled_from(sorted(part)) if isinstance(part, dict) else st.integers(0, len(part) - 1))
        if isinstance(part[key], dict | list) and part[key] and data.draw(st.booleans()):
            part = part[key]
            continue
        part[key] = data.draw(st.sampled_from(_LEAVES))
        break
    _agree(json.dumps(fields))
