"""`clepsydra list`: lists actions."""

import sys

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools.client import scheduler_client
from clepsydra.tools.commands.actions.pages import pages
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.actions import format_next, format_recurrence, format_state, format_target
from clepsydra.tools.format.json_output import message_line
from clepsydra.tools.format.streamed_table import Column, StreamedTable
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.action_pb2 import ScheduledAction

# On a narrow terminal, the target is cut first and the recurrence next. Id, state and time are always whole.
_COLUMNS = (
    Column("ID"),
    Column("STATE"),
    Column("NEXT"),
    Column("RUNS", cut_first=1, is_right_aligned=True),
    Column("RECURRENCE", cut_first=2),
    Column("TARGET", cut_first=3),
)


@click.command(
    "list",
    epilog="""\b
Examples:
  clepsydra list
  clepsydra list --all --json > actions.jsonl
  clepsydra list --limit 20 --page-token TOKEN

The order is stable, but it is not the order of creation. Actions are printed page by page as they come. On a narrow
terminal, TARGET and RECURRENCE are cut; in a pipe nothing is. --json prints one action a line.""",
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most actions to list.")
@click.option("--all", "everything", is_flag=True, help="List all actions.")
@click.option("--page-token", type=NAME_PARAMETER, help="Continue where another list ended.")
@flags.as_json
@flags.server
@flags.with_settings
def list_command(settings: Settings, limit: int, everything: bool, page_token: str | None, as_json: bool) -> None:
    """List actions with their states."""
    running = 0
    next_token = ""
    clock, table = SystemClock(), StreamedTable.on_stdout(_COLUMNS)
    with scheduler_client(settings) as client:
        for page in pages(client, None if everything else limit, page_token or ""):
            next_token = page.next_page_token
            running += sum(action.HasField("running") for action in page.actions)
            if as_json:
                sys.stdout.buffer.write(b"".join(map(message_line, page.actions)))
            else:
                now_us = clock.now_us()
                table.add_page([_row(action, now_us) for action in page.actions])
    if running:
        click.echo(f"{running} {'is' if running == 1 else 'are'} running.", err=True)
    if next_token:
        click.echo(f"There are more: --all, or --page-token {next_token}", err=True)


def _row(action: ScheduledAction, now_us: int) -> list[str]:
    return [
        action.meta.id,
        format_state(action.status.state) + (", running" if action.HasField("running") else ""),
        format_next(action, now_us),
        f"{action.status.counters.runs}",
        format_recurrence(action.spec),
        format_target(action.spec),
    ]
