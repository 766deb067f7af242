"""`clepsydra get`: shows an action."""

from collections.abc import Iterator

import click

from clepsydra.core.action.state_machine import LIVE
from clepsydra.core.clock import SystemClock
from clepsydra.core.times import us_of
from clepsydra.tools.action_ids import id_argument
from clepsydra.tools.client import scheduler_client
from clepsydra.tools.format.actions import (
    format_counters,
    format_next,
    format_recurrence,
    format_running,
    format_state,
    format_target,
)
from clepsydra.tools.format.attempts import attempts_table
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.format.tables import console, name_value_table
from clepsydra.tools.format.text import printable
from clepsydra.tools.format.times import rfc3339
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.spec_flags.table import FLAGS
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import GetActionRequest


@click.command(
    "get",
    epilog="""\b
Examples:
  clepsydra get hello
  clepsydra get hello --json

Fields with their default are left out, bodies and payloads are shown by their size, headers by their names. The last
attempts follow as a table, the newest last. --json prints everything.""",
)
@id_argument
@flags.as_json
@flags.server
@flags.with_settings
def get_command(settings: Settings, action_id: str, as_json: bool) -> None:
    """Show an action: what it does, when, and how its attempts went."""
    with scheduler_client(settings) as client:
        action = client.call("GetAction", GetActionRequest(id=action_id))
    if as_json:
        print_message(action)
        return
    console().print(name_value_table(_lines(action, SystemClock().now_us())))
    if action.status.attempts:
        console().print()
        console().print(attempts_table(action.status.attempts))


def _lines(action: ScheduledAction, now_us: int) -> Iterator[tuple[str, str]]:
    meta, spec, status = action.meta, action.spec, action.status
    state = format_state(status.state)
    yield "id", meta.id
    yield "state", f"{state}: {printable(status.reason)}" if status.reason else state
    if action.HasField("running"):
        yield "running", format_running(action.running, now_us)
    yield "next", format_next(action, now_us)
    if status.state in LIVE and status.occurrence_time != spec.schedule.start_time:
        # Exactly, for `cancel --occurrence`.
        yield "occurrence", rfc3339(us_of(status.occurrence_time))
    yield "recurrence", format_recurrence(spec)
    yield "target", format_target(spec)
    for flag in FLAGS:
        text = flag.show(action) if flag.has_own_line else None
        if text is not None:
            yield flag.title, text
    yield "counters", format_counters(status.counters)
    yield "created", rfc3339(us_of(meta.create_time))
    yield "updated", rfc3339(us_of(meta.update_time))
    yield "etag", f"{meta.etag} (revision {meta.revision})"
