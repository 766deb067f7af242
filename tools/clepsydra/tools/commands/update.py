"""`clepsydra update`: changes what an action does, or when."""

from typing import Any

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools import options
from clepsydra.tools.action_files import opened, read_action
from clepsydra.tools.client import connected
from clepsydra.tools.output import message_as_dict, print_json
from clepsydra.tools.settings import Settings
from clepsydra.tools.spec_flags import SpecFlag, given_flags, spec_flags, write_flags
from clepsydra.tools.words import accepted
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

What is given is changed, and the rest stays as it is. An update that is more than labels is a new life: the status
starts afresh, and an attempt that is running is not accepted any more. --header and --label replace all that there
are. --clear takes the path of any field, such as spec.retry.max_elapsed or meta.labels.""",
)
@click.argument("action_id", metavar="ID")
@spec_flags
@click.option("--once", is_flag=True, help="Run only once, and not periodically any more.")
@click.option("--clear", metavar="PATH", multiple=True, help="Take a field back to its default; may be repeated.")
@click.option("--from-file", metavar="FILE", help="The whole action in JSON; - is standard input.")
@click.option("--etag", default="", help="Refuse if the action has another etag.")
@click.option("--allow-missing", is_flag=True, help="Add the action if there is none.")
@click.option("--request-id", default="", help="Makes it safe to repeat the call.")
@click.option("--validate-only", is_flag=True, help="Check everything and change nothing.")
@options.as_json
@options.server
@options.reads_settings
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
        _refuse_parts(given, once, clear)
        with opened(from_file) as file:
            request.action.CopyFrom(read_action(file.read()))
    else:
        _write_parts(request, given, once, clear)
    request.action.meta.id = action_id
    with connected(settings) as client:
        action = client.call("UpdateAction", request)
    if as_json:
        print_json(message_as_dict(action))
    else:
        prefix = "Valid, and not changed: " if validate_only else ""
        click.echo(prefix + accepted(action, SystemClock().now_us()))


def _write_parts(request: UpdateActionRequest, given: dict[SpecFlag, Any], once: bool, clear: tuple[str, ...]) -> None:
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


def _refuse_parts(given: dict[SpecFlag, Any], once: bool, clear: tuple[str, ...]) -> None:
    named = [*(flag.name for flag in given), *["--once"] * once, *["--clear"] * bool(clear)]
    if named:
        raise click.UsageError(f"--from-file brings the whole action: leave {named[0]} out")
