"""`clepsydra rm`, `pause`, `resume` and `run`: one word for one or more actions."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools import options
from clepsydra.tools.client import Client, connected
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.output import message_as_dict, print_json
from clepsydra.tools.settings import Settings
from clepsydra.tools.words import accepted
from clepsydra.v1.scheduler_pb2 import DeleteActionRequest, PauseActionRequest, ResumeActionRequest, RunActionRequest

_ids = click.argument("action_ids", metavar="ID...", nargs=-1, required=True)
_etag = click.option("--etag", default="", help="Refuse if the action has another etag.")
_request_id = click.option("--request-id", default="", help="Makes it safe to repeat the call.")


@click.command(
    "rm",
    epilog="""\b
Examples:
  clepsydra rm hello
  clepsydra rm invoice-1 invoice-2 --allow-missing

An attempt that is running is not stopped, but its outcome is not accepted and no other begins.""",
)
@_ids
@_etag
@_request_id
@click.option("--allow-missing", is_flag=True, help="Succeed if there is no such action.")
@click.option("--validate-only", is_flag=True, help="Check everything and remove nothing.")
@options.server
@options.reads_settings
def rm_command(
    settings: Settings,
    action_ids: Sequence[str],
    etag: str,
    request_id: str,
    allow_missing: bool,
    validate_only: bool,
) -> int:
    """Remove actions."""
    _check_single(action_ids, etag, request_id)

    def remove(client: Client, action_id: str) -> None:
        request = DeleteActionRequest(
            id=action_id, etag=etag, request_id=request_id, allow_missing=allow_missing, validate_only=validate_only
        )
        client.call("DeleteAction", request)
        click.echo(f"{action_id} {'can be removed' if validate_only else 'is removed'}")

    return _each(settings, action_ids, remove)


def _change(name: str, method: str, request_type: type[Any], summary: str, epilog: str) -> click.Command:
    """Pause, resume and run differ in one word."""

    @click.command(name, help=summary, epilog=epilog)
    @_ids
    @_etag
    @_request_id
    @options.as_json
    @options.server
    @options.reads_settings
    def command(settings: Settings, action_ids: Sequence[str], etag: str, request_id: str, as_json: bool) -> int:
        _check_single(action_ids, etag, request_id)

        def change(client: Client, action_id: str) -> None:
            action = client.call(method, request_type(id=action_id, etag=etag, request_id=request_id))
            if as_json:
                print_json(message_as_dict(action), in_one_line=len(action_ids) > 1)
            else:
                click.echo(accepted(action, SystemClock().now_us()))

        return _each(settings, action_ids, change)

    return command


pause_command = _change(
    "pause",
    "PauseAction",
    PauseActionRequest,
    "Hold actions back until they are resumed.",
    """\b
Examples:
  clepsydra pause report
  clepsydra pause report --etag 5f1c

Counters are kept.""",
)
resume_command = _change(
    "resume",
    "ResumeAction",
    ResumeActionRequest,
    "Let paused actions go on.",
    """\b
Examples:
  clepsydra resume report

An action goes on with its next occurrence, or at once if its only one has passed.""",
)
run_command = _change(
    "run",
    "RunAction",
    RunActionRequest,
    "Run actions now, whether they wait or have ended.",
    """\b
Examples:
  clepsydra run report

A periodic action then goes on as planned.""",
)


def _check_single(action_ids: Sequence[str], etag: str, request_id: str) -> None:
    if len(action_ids) > 1 and (etag or request_id):
        raise click.UsageError(f"{'--etag' if etag else '--request-id'} belongs to one action: name only one")


def _each(settings: Settings, action_ids: Sequence[str], do: Callable[[Client, str], None]) -> int:
    """Do it to each, whatever happened to the others; the exit code is that of the first failure."""
    code = Exit.OK
    with connected(settings) as client:
        for action_id in action_ids:
            try:
                do(client, action_id)
            except Failure as error:
                if len(action_ids) == 1 or error.code is Exit.UNAVAILABLE:
                    raise
                click.echo(f"clepsydra: {error}", err=True)
                code = code or error.code
    return code
