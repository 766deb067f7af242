"""`clepsydra list`: lists actions."""

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools.client import scheduler_client
from clepsydra.tools.commands.actions.pages import pages
from clepsydra.tools.format.actions import format_next, format_recurrence, format_state, format_target
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.format.tables import console, table
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.action_pb2 import ScheduledAction


@click.command(
    "list",
    epilog="""\b
Examples:
  clepsydra list
  clepsydra list --all --json > actions.jsonl
  clepsydra list --limit 20 --page-token TOKEN

The order is stable, but it is not the order of creation. --json prints one action a line.""",
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most actions to list.")
@click.option("--all", "everything", is_flag=True, help="List all actions.")
@click.option("--page-token", default="", help="Continue where another list ended.")
@flags.as_json
@flags.server
@flags.with_settings
def list_command(settings: Settings, limit: int, everything: bool, page_token: str, as_json: bool) -> None:
    """List actions with their states."""
    rows = []
    running = 0
    next_token = ""
    with scheduler_client(settings) as client:
        now_us = SystemClock().now_us()
        for page in pages(client, None if everything else limit, page_token):
            next_token = page.next_page_token
            for action in page.actions:
                running += action.HasField("running")
                if as_json:
                    print_message(action, in_one_line=True)
                else:
                    rows.append(_row(action, now_us))
    if not as_json:
        console().print(table(["ID", "STATE", "NEXT", "RUNS", "RECURRENCE", "TARGET"], rows, right=["RUNS"]))
    if running:
        click.echo(f"{running} {'is' if running == 1 else 'are'} running.", err=True)
    if next_token:
        click.echo(f"There are more: --all, or --page-token {next_token}", err=True)


def _row(action: ScheduledAction, now_us: int) -> list[str]:
    return [
        action.meta.id,
        format_state(action.status.state) + (", running" if action.HasField("running") else ""),
        format_next(action.status, now_us),
        f"{action.status.counters.runs}",
        format_recurrence(action.spec),
        format_target(action.spec),
    ]
