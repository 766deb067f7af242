"""`clepsydra watch`: follows one action until it ends, with its attempts as they come."""

import threading
from collections.abc import Iterator
from typing import Any

import click
from google.protobuf.json_format import MessageToDict

from clepsydra.core.action.state_machine import ENDED
from clepsydra.core.clock import SystemClock
from clepsydra.core.times import us_of
from clepsydra.tools.action_ids import id_argument
from clepsydra.tools.client import Client, scheduler_client
from clepsydra.tools.exits import Exit
from clepsydra.tools.format.actions import format_change, format_state
from clepsydra.tools.format.attempts import format_attempt
from clepsydra.tools.format.json_output import print_json
from clepsydra.tools.format.text import printable
from clepsydra.tools.format.times import to_the_second
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, ScheduledAction
from clepsydra.v1.scheduler_pb2 import GetActionRequest


@click.command(
    "watch",
    epilog="""\b
Examples:
  clepsydra watch report
  clepsydra watch import-17 --interval 0.2 && echo "it succeeded"

Prints a line when an attempt starts, when one has ended, and when the state changes, until the action has ended. The
exit code is 0 if it succeeded, 1 if it failed, expired or was cancelled, 3 if there is no such action (any more).""",
)
@id_argument
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="The time between two looks.",
)
@flags.as_json
@flags.server
@flags.with_settings
def watch_command(settings: Settings, action_id: str, interval: float, as_json: bool) -> int:
    """Follow an action until it ends."""
    watch = Watch()
    with scheduler_client(settings) as client:
        for action in _looks(client, action_id, interval):
            for event in watch.events(action):
                if as_json:
                    print_json(event.as_dict(), in_one_line=True)
                else:
                    click.echo(event.line())
            if action.status.state in ENDED:
                return Exit.OK if action.status.state == action_pb2.SUCCEEDED else Exit.NEGATIVE
    return Exit.OK


def _looks(client: Client, action_id: str, interval_s: float) -> Iterator[ScheduledAction]:
    never = threading.Event()
    while True:
        yield client.call("GetAction", GetActionRequest(id=action_id))
        # An event that is never set is a pause that Ctrl-C ends.
        never.wait(interval_s)


class Event:
    """Something that a look shows and the look before did not."""

    def __init__(self, kind: str, action: ScheduledAction, attempt: Attempt | None = None) -> None:
        self._kind = kind
        self._action = action
        self._attempt = attempt

    def line(self) -> str:
        if self._attempt is not None:
            return format_attempt(self._attempt)
        if self._kind == "running":
            running = self._action.running
            worker = printable(running.worker) or "an unknown worker"
            since = to_the_second(us_of(running.start_time))
            return f"attempt {running.attempt_number} runs on {worker} since {since}"
        return format_change(self._action, SystemClock().now_us())

    def as_dict(self) -> dict[str, Any]:
        if self._attempt is not None:
            content = MessageToDict(self._attempt, preserving_proto_field_name=True)
        elif self._kind == "running":
            content = MessageToDict(self._action.running, preserving_proto_field_name=True)
        else:
            content = MessageToDict(self._action.status, preserving_proto_field_name=True)
            content["state"] = format_state(self._action.status.state)
        return {"event": self._kind, **content}


class Watch:
    """Tells what is new in each look."""

    def __init__(self) -> None:
        self._attempts: set[tuple[int, int, int]] | None = None
        self._running: tuple[int, int] | None = None
        self._planned: tuple[int, int] | None = None

    def events(self, action: ScheduledAction) -> Iterator[Event]:
        status = action.status
        known, attempts = self._attempts, {_identity(attempt): attempt for attempt in status.attempts}
        self._attempts = set(attempts)
        for identity, attempt in attempts.items():
            # What ended before the first look is not news, except the last one.
            if identity not in (known if known is not None else self._attempts - {_identity(status.last_attempt)}):
                yield Event("attempt", action, attempt)
        running = (us_of(status.occurrence_time), action.running.attempt_number) if action.HasField("running") else None
        if running is not None and running != self._running:
            yield Event("running", action)
        self._running = running
        planned = status.state, us_of(status.scheduled_time)
        if planned != self._planned:
            yield Event("state", action)
        self._planned = planned


def _identity(attempt: Attempt) -> tuple[int, int, int]:
    return us_of(attempt.occurrence_time), attempt.number, us_of(attempt.start_time)
