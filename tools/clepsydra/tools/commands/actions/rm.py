"""`clepsydra rm`: removes actions."""

from collections.abc import Sequence

import click

from clepsydra.tools.action_ids import ids_argument
from clepsydra.tools.client import Client
from clepsydra.tools.commands.actions.each_action import (
    check_one_action,
    etag_flag,
    for_each_action,
    request_id_flag,
)
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.scheduler_pb2 import DeleteActionRequest


@click.command(
    "rm",
    epilog="""\b
Examples:
  clepsydra rm hello
  clepsydra rm invoice-1 invoice-2 --allow-missing

A running attempt is not stopped, but its outcome is not accepted, and no other attempt begins.""",
)
@ids_argument
@etag_flag
@request_id_flag
@click.option("--allow-missing", is_flag=True, help="Succeed if there is no such action.")
@click.option("--validate-only", is_flag=True, help="Check everything and remove nothing.")
@flags.server
@flags.with_settings
def rm_command(
    settings: Settings,
    action_ids: Sequence[str],
    etag: str,
    request_id: str,
    allow_missing: bool,
    validate_only: bool,
) -> int:
    """Remove actions."""
    check_one_action(action_ids, etag, request_id)

    def remove(client: Client, action_id: str) -> None:
        request = DeleteActionRequest(
            id=action_id, etag=etag, request_id=request_id, allow_missing=allow_missing, validate_only=validate_only
        )
        client.call("DeleteAction", request)
        click.echo(f"{action_id} {'can be removed' if validate_only else 'is removed'}")

    return for_each_action(settings, action_ids, remove)
