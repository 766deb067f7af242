"""What `clepsydra export` writes of an action: what can go on elsewhere, and nothing about this moment."""

import json

from clepsydra.core.times import timestamp
from clepsydra.tools.commands.actions.export import _Export
from clepsydra.v1.action_pb2 import Meta, Running, ScheduledAction, Spec, Status


def an_action(action_id: str, state: str, **fields: object) -> ScheduledAction:
    action = ScheduledAction(meta=Meta(id=action_id, guid="f" * 32), spec=Spec(log={}), **fields)  # type: ignore[arg-type]
    action.status.CopyFrom(Status(state=state, occurrence_time=timestamp(7)))
    return action


def test_a_running_action_is_counted_and_written_without_its_attempt() -> None:
    export = _Export(ended=True)
    [line] = export.lines([an_action("a", "SCHEDULED", running=Running(worker="w"))])
    assert "running" not in json.loads(line)
    assert export.summary(" to f") == (
        "1 action exported to f, 0 of them paused, 1 running: these run again where they are imported."
    )


def test_a_line_has_the_key_of_its_occurrence_unless_the_action_has_ended() -> None:
    lines = list(_Export(ended=True).lines([an_action("a", "PAUSED"), an_action("b", "SUCCEEDED")]))
    paused, ended = (json.loads(line)["status"] for line in lines)
    assert paused["occurrence"]["idempotency_key"] == "f" * 32 + "-7"
    assert "occurrence" not in ended


def test_ended_and_damaged_actions_can_be_left_out() -> None:
    export = _Export(ended=False)
    assert not list(export.lines([an_action("a", "FAILED"), ScheduledAction(meta=Meta(id="damaged"))]))
    assert export.counts == {"left out": 1, "damaged": 1}
