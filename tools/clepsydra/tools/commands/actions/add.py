"""`clepsydra add`: schedules an action, or a file of actions."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools.client import Client, scheduler_client
from clepsydra.tools.commands.actions.action_file import ActionFile
from clepsydra.tools.commands.actions.each_action import request_id_flag
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.actions import format_change
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.spec_flags.given import check_new, given_flags, spec_flags, write_flags
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest


@click.command(
    "add",
    epilog="""\b
Examples:
  clepsydra add hello --in 5s --log "hello"
  clepsydra add --at 2027-01-01T07:30:00+02:00 --http https://example.com/wake
  clepsydra add report --every 1h --http https://example.com/report --header 'X-Team: billing' --body @report.json
  clepsydra add invoice-42 --handler send-invoice --payload '{"order": 42}' --content-type application/json
  clepsydra add poll --every 10m --drift --until 2027-06-01T00:00:00Z --max-attempts 3 --log "poll"
  clepsydra add --from-file actions.jsonl

Write durations like 500ms, 5s, 10m, 2h, 1d or 1h30m. A time needs an offset: Z or +02:00. --body and --payload take
text, @file, or @- for standard input. With --request-id, it is safe to repeat the command: it takes effect once. Each
line of --from-file is one new action in JSON: meta and spec, as `clepsydra get --json` prints them, without a status.
With --request-id, each line gets that id and its line number, so that the same file can be added again after an
interruption. `clepsydra import` takes over actions with their status.""",
)
@click.argument("action_id", metavar="[ID]", required=False, type=NAME_PARAMETER)
@spec_flags
@click.option("--from-file", metavar="FILE", help="Add every action of a file of JSON lines; - is standard input.")
@request_id_flag
@click.option("--validate-only", is_flag=True, help="Check everything and add nothing.")
@flags.as_json
@flags.server
@flags.with_settings
def add_command(
    settings: Settings,
    action_id: str | None,
    from_file: str | None,
    request_id: str,
    validate_only: bool,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Schedule an action. Without an ID, the scheduler generates one."""
    given = given_flags(arguments)
    if from_file is None:
        check_new(given)
        return _add(settings, _request(action_id, given, request_id, validate_only), as_json)
    if given or action_id is not None:
        extra = "ID" if action_id is not None else next(iter(given)).name
        raise click.UsageError(f"a file of actions has everything: leave {extra} out, or --from-file")
    with scheduler_client(settings) as client:
        return _add_file(client, from_file, request_id, validate_only, as_json)


def _request(
    action_id: str | None, given: dict[SpecFlag, Any], request_id: str, validate_only: bool
) -> CreateActionRequest:
    request = CreateActionRequest(request_id=request_id, validate_only=validate_only)
    if action_id is not None:
        request.action.meta.id = action_id
    write_flags(request.action, given)
    return request


def _add(settings: Settings, request: CreateActionRequest, as_json: bool) -> int:
    with scheduler_client(settings) as client:
        action = client.call("CreateAction", request)
    if as_json:
        print_message(action)
    else:
        prefix = "Valid, and not added: " if request.validate_only else ""
        click.echo(prefix + format_change(action, SystemClock().now_us()))
    return Exit.OK


def _add_file(client: Client, name: str, request_id: str, validate_only: bool, as_json: bool) -> int:
    """Add every action of a file. Returns the exit code: 0 if all lines succeeded."""

    def request_of(number: int, _text: bytes, action: ScheduledAction) -> CreateActionRequest:
        if action.HasField("status"):
            raise Failure(
                "the line has a status, and a new action has none: it would run again if it has ended, and go on if it "
                "is paused; use `clepsydra import`",
                Exit.USAGE,
            )
        line_id = f"{request_id}-{number}" if request_id else ""
        return CreateActionRequest(action=action, request_id=line_id, validate_only=validate_only)

    def start(requests: list[CreateActionRequest]) -> Callable[[], Iterable[Any]]:
        finish = client.start("BatchCreateActions", BatchCreateActionsRequest(requests=requests))
        return lambda: finish().results

    file = ActionFile(name, request_of)
    progress = ProgressCounter("added")
    added = 0
    for results in file.send(start, progress):
        added += len(results)
        if as_json:
            for result in results:
                print_message(result.action, in_one_line=True)
        progress.show(added)
    progress.clear()
    if not as_json:
        click.echo(f"{added:,} of {added + file.failed:,} actions {'are valid' if validate_only else 'were added'}.")
    return Exit.NEGATIVE if file.failed else Exit.OK
