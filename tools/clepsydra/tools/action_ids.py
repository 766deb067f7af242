"""Ids of actions as arguments of commands; a shell completes them from the scheduler."""

import os

import click

from clepsydra.tools.client import scheduler_client
from clepsydra.tools.exits import Failure
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.settings.loader import load_settings
from clepsydra.v1.scheduler_pb2 import ListActionsRequest

_COMPLETED_MAX = 1000


def complete_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """For a shell: ids that start with this, among the first actions of the scheduler.

    A shell has no place for an error, so there is no completion then.
    """
    try:
        settings = load_settings(None, os.environ, {}).settings
        with scheduler_client(settings) as client:
            page = client.call("ListActions", ListActionsRequest(page_size=_COMPLETED_MAX))
    except (Failure, click.ClickException):
        return []
    return [action.meta.id for action in page.actions if action.meta.id.startswith(incomplete)]


id_argument = click.argument("action_id", metavar="ID", type=NAME_PARAMETER, shell_complete=complete_ids)
ids_argument = click.argument(
    "action_ids", metavar="ID...", nargs=-1, required=True, type=NAME_PARAMETER, shell_complete=complete_ids
)
