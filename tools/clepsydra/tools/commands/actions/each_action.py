"""What commands that take ids have in common."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from clepsydra.tools.client import Client, scheduler_client
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.text import printable_lines
from clepsydra.tools.settings.model import Settings


def etag_flag(command: Any) -> Any:
    return _optional_name("--etag", "Refuse if the action has another etag.")(command)


def request_id_flag(command: Any) -> Any:
    return _optional_name("--request-id", "Makes it safe to repeat the call.")(command)


def _optional_name(flag: str, help_text: str) -> Any:
    """Not given, it is an empty text. Given as an empty text, it would silently not have its effect."""

    def keep(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
        return value or ""

    return click.option(flag, type=NAME_PARAMETER, metavar="TEXT", callback=keep, help=help_text)


def check_one_action(action_ids: Sequence[str], etag: str, request_id: str) -> None:
    """Refuse an etag or a request id together with more than one action."""
    if len(action_ids) > 1 and (etag or request_id):
        raise click.UsageError(f"{'--etag' if etag else '--request-id'} belongs to one action: name only one")


def for_each_action(settings: Settings, action_ids: Sequence[str], call: Callable[[Client, str], None]) -> int:
    """Make the call for each action, even if it failed for another. Returns the exit code of the first failure."""
    code = Exit.OK
    with scheduler_client(settings) as client:
        for action_id in action_ids:
            try:
                call(client, action_id)
            except Failure as error:
                if len(action_ids) == 1 or error.code is Exit.UNAVAILABLE:
                    raise
                click.echo(printable_lines(f"clepsydra: {error}"), err=True)
                code = code or error.code
    return code
