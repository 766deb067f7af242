"""`clepsydra cancel`: gives the current occurrence of actions up."""

from collections.abc import Sequence

import click

from clepsydra.core.clock import SystemClock
from clepsydra.core.times import timestamp, us_of
from clepsydra.tools.action_ids import ids_argument
from clepsydra.tools.client import Client
from clepsydra.tools.commands.actions.each_action import (
    check_one_action,
    etag_flag,
    for_each_action,
    request_id_flag,
)
from clepsydra.tools.fields.types import TIME
from clepsydra.tools.format.actions import format_change
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.format.text import printable
from clepsydra.tools.format.times import to_the_second
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.scheduler_pb2 import CancelActionRequest, CancelActionResponse


@click.command(
    "cancel",
    epilog="""\b
Examples:
  clepsydra cancel report
  clepsydra cancel report --occurrence 2027-01-01T07:30:00Z

A running attempt is cancelled within two seconds and is not retried. An action that runs once ends as CANCELLED, a
periodic one continues with its next occurrence. If the occurrence ended a moment before, its outcome is kept and the
exit code is 4: a later occurrence is never cancelled in its place.""",
)
@ids_argument
@click.option(
    "--occurrence", type=TIME.parameter, metavar="TIME", help="Cancel this occurrence or nothing; `get` shows its time."
)
@etag_flag
@request_id_flag
@flags.as_json
@flags.server
@flags.with_settings
def cancel_command(
    settings: Settings,
    action_ids: Sequence[str],
    occurrence: int | None,
    etag: str,
    request_id: str,
    as_json: bool,
) -> int:
    """Cancel the current run of actions, or skip the occurrence that they wait for."""
    check_one_action(action_ids, etag, request_id)
    if len(action_ids) > 1 and occurrence is not None:
        raise click.UsageError("--occurrence belongs to one action: name only one")

    def cancel(client: Client, action_id: str) -> None:
        request = CancelActionRequest(id=action_id, etag=etag, request_id=request_id)
        if occurrence is not None:
            request.occurrence_time.CopyFrom(timestamp(occurrence))
        response = client.call("CancelAction", request)
        if as_json:
            print_message(response, in_one_line=len(action_ids) > 1)
        else:
            click.echo(f"{_what_happened(response)}; {format_change(response.action, SystemClock().now_us())}")

    return for_each_action(settings, action_ids, cancel)


def _what_happened(response: CancelActionResponse) -> str:
    if response.cancelled != CancelActionResponse.RUNNING_ATTEMPT:
        return "the occurrence that it waited for is skipped"
    attempts = response.action.status.attempts
    if not attempts:
        return "the running attempt is cancelled"
    attempt = attempts[-1]
    worker = f" on {printable(attempt.worker)}" if attempt.worker else ""
    return f"attempt {attempt.number}{worker}, running since {to_the_second(us_of(attempt.start_time))}, is cancelled"
