"""`clepsydra update`: changes fields of an action."""

from typing import Any

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools.action_ids import id_argument
from clepsydra.tools.client import scheduler_client
from clepsydra.tools.commands.actions.action_file import read_action
from clepsydra.tools.commands.actions.each_action import etag_flag, request_id_flag
from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.actions import format_change, format_plan_effect
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.spec_flags.given import given_flags, spec_flags, write_flags
from clepsydra.v1.scheduler_pb2 import UpdateActionRequest

_ONCE = "spec.schedule.once"


@click.command(
    "update",
    epilog="""\b
Examples:
  clepsydra update report --every 2h --max-attempts 5
  clepsydra update hello --in 10s
  clepsydra update report --once --clear spec.start_deadline
  clepsydra update hello --allow-missing --log "hello again"
  clepsydra get report --json | sed s/example.com/example.org/ | clepsydra update report --from-file -

Fields without a flag keep their values. Only another schedule plans the action afresh; the command says what became of
the plan. Another target keeps the plan, and the outcome of a running attempt is not accepted. `clepsydra run` runs an
action again. --header and --label replace all headers and all labels. --clear takes the path of any field, such as
spec.retry.max_elapsed or meta.labels.""",
)
@id_argument
@spec_flags
@click.option("--once", is_flag=True, help="Run only once: the action is no longer periodic.")
@click.option(
    "--clear", metavar="PATH", type=NAME_PARAMETER, multiple=True, help="Reset a field to its default; may be repeated."
)
@click.option("--from-file", metavar="FILE", help="The whole action in JSON; - is standard input.")
@etag_flag
@click.option("--allow-missing", is_flag=True, help="Add the action if there is none.")
@request_id_flag
@click.option("--validate-only", is_flag=True, help="Check everything and change nothing.")
@flags.as_json
@flags.server
@flags.with_settings
def update_command(
    settings: Settings,
    action_id: str,
    once: bool,
    clear: tuple[str, ...],
    from_file: str | None,
    as_json: bool,
    etag: str,
    allow_missing: bool,
    request_id: str,
    validate_only: bool,
    **arguments: Any,
) -> None:
    """Change what an action does, or when."""
    request = UpdateActionRequest(
        etag=etag, allow_missing=allow_missing, request_id=request_id, validate_only=validate_only
    )
    given = given_flags(arguments)
    if from_file is not None:
        _refuse_fields(given, once, clear)
        request.action.CopyFrom(read_action(from_file))
    else:
        _write_fields(request, given, once, clear)
    request.action.meta.id = action_id
    with scheduler_client(settings) as client:
        action = client.call("UpdateAction", request)
    if as_json:
        print_message(action)
    else:
        prefix = "Valid, and not changed: " if validate_only else ""
        click.echo(prefix + format_change(action, SystemClock().now_us()))
        click.echo(format_plan_effect(action))


def _write_fields(request: UpdateActionRequest, given: dict[SpecFlag, Any], once: bool, clear: tuple[str, ...]) -> None:
    """Write the given fields, and name them in the update mask."""
    write_flags(request.action, given)
    paths = [flag.path for flag in given]
    if once:
        if any(flag.path.startswith("spec.schedule.periodic.") for flag in given):
            raise click.UsageError("--once and the flags of periodic actions exclude each other")
        request.action.spec.schedule.once.SetInParent()
        paths.append(_ONCE)
    paths += clear
    if not paths:
        raise click.UsageError("say what to change, such as --in 10s or --max-attempts 3")
    twice = next((path for path in clear if paths.count(path) > 1), None)
    if twice is not None:
        raise click.UsageError(f"--clear {twice} contradicts the flag that sets it")
    request.update_mask.paths.extend(paths)


def _refuse_fields(given: dict[SpecFlag, Any], once: bool, clear: tuple[str, ...]) -> None:
    names = [*(flag.name for flag in given), *["--once"] * once, *["--clear"] * bool(clear)]
    if names:
        raise click.UsageError(f"the file has the whole action: leave {names[0]} out, or --from-file")
