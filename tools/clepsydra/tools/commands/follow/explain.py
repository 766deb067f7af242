"""`clepsydra explain`: says why an action runs, waits, or does not run."""

from collections.abc import Iterator

import click
from rich.text import Text

from clepsydra.core.times import duration_us, us_of
from clepsydra.core.wording import rounded_duration
from clepsydra.tools.action_ids import id_argument
from clepsydra.tools.client import scheduler_client
from clepsydra.tools.format.actions import format_state
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.format.tables import console, name_value_table, table
from clepsydra.tools.format.text import printable
from clepsydra.tools.format.times import relative_time, rfc3339
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.scheduler_pb2 import ExplainActionRequest, ExplainActionResponse, Stage


@click.command(
    "explain",
    epilog="""\b
Examples:
  clepsydra explain report
  clepsydra explain report --json | jq -r .reason

The first line is the answer. Below it: where the action's row is and which worker holds its shard, what it waits for,
the stages of its last run with the time that each took, and what comes next; all from one snapshot of the store.""",
)
@id_argument
@flags.as_json
@flags.server
@flags.with_settings
def explain_command(settings: Settings, action_id: str, as_json: bool) -> None:
    """Explain why an action runs, waits, or does not run."""
    with scheduler_client(settings) as client:
        explained = client.call("ExplainAction", ExplainActionRequest(id=action_id))
    if as_json:
        print_message(explained)
        return
    screen = console()
    screen.print(Text(printable(explained.answer)))
    screen.print()
    screen.print(name_value_table(_lines(explained)))
    if explained.stages:
        screen.print()
        screen.print(table(["STAGE", "TIME", "TOOK", ""], map(_stage_cells, explained.stages), right=["TOOK"]))


def _lines(explained: ExplainActionResponse) -> Iterator[tuple[str, str]]:
    now_us = us_of(explained.time)
    yield "id", explained.action.meta.id
    yield "state", format_state(explained.action.status.state)
    yield "reason", explained.reason
    if explained.waits_for:
        yield "waits for", printable(explained.waits_for)
    if explained.next:
        yield "next", printable(explained.next)
    if explained.HasField("row"):
        row = explained.row
        at = us_of(row.scheduled_time)
        yield "row", f"{row.queue}, shard {row.shard}, at {rfc3339(at)} ({relative_time(at, now_us)})"
    if explained.HasField("lock"):
        yield "lock", _format_lock(explained, now_us)
    yield "as of", rfc3339(now_us)


def _format_lock(explained: ExplainActionResponse, now_us: int) -> str:
    lock = explained.lock
    if not lock.worker:
        return "free, and no worker has ever held it"
    heartbeat = f"last heartbeat {relative_time(us_of(lock.heartbeat_time), now_us)}"
    if not lock.held:
        return f"free, last held by {printable(lock.worker)}, {heartbeat}"
    return f"held by {printable(lock.worker)} since {rfc3339(us_of(lock.since_time))}, {heartbeat}"


def _stage_cells(stage: Stage) -> list[str]:
    took = f"+{rounded_duration(duration_us(stage.took))}" if stage.HasField("took") else ""
    return [stage.name, rfc3339(us_of(stage.time)), took, "made it late" if stage.made_it_late else ""]
