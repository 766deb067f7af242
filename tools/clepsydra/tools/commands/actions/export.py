"""`clepsydra export`: writes all actions, with their status, as JSON lines."""

import click

from clepsydra.core.action.occurrence import keep_key
from clepsydra.core.action.state_machine import ENDED
from clepsydra.tools.client import scheduler_client
from clepsydra.tools.commands.actions.output_file import open_output
from clepsydra.tools.commands.actions.pages import pages
from clepsydra.tools.exits import Exit
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.json_output import message_line
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.tools.format.text import counted
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1 import action_pb2

_PROGRESS_LINE_EVERY = 100_000


@click.command(
    "export",
    epilog="""\b
Examples:
  clepsydra export actions.jsonl
  clepsydra export --server old:7070 | clepsydra import - --server new:7070
  clepsydra export --output actions.jsonl --no-ended

Each line is one action in JSON, with its status, as `clepsydra list --json` prints it: `clepsydra import` takes it
over, and it goes on as it stood. A file appears under its name when it is complete. It can contain secrets (headers,
payloads), so only you can read it.

Stop the workers first, if the actions are to move: an action that runs after it was exported runs again elsewhere.""",
)
@click.argument("file", metavar="[FILE]", required=False, type=NAME_PARAMETER)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=NAME_PARAMETER,
    help="The file to write; - or none is the standard output.",
)
@click.option(
    "--ended/--no-ended", default=True, help="Write ended actions too, which `import` leaves out unless asked for."
)
@flags.server
@flags.with_settings
def export_command(settings: Settings, file: str | None, output: str | None, ended: bool) -> int:
    """Write all actions, with their status, as JSON lines."""
    if file is not None and output is not None:
        raise click.UsageError("FILE and --output name the same thing: give one of them")
    name = file or output or "-"
    written = left_out = paused = 0
    damaged = False
    progress = ProgressCounter("exported", _PROGRESS_LINE_EVERY)
    with scheduler_client(settings) as client, open_output(name) as stream:
        for page in pages(client, None, ""):
            for action in page.actions:
                if not action.HasField("spec"):
                    damaged = True
                    progress.clear()
                    click.echo(f"clepsydra: action {action.meta.id} cannot be decoded and is left out", err=True)
                elif action.status.state in ENDED and not ended:
                    left_out += 1
                else:
                    keep_key(action.status, action.meta.guid)
                    stream.write(message_line(action))
                    written += 1
                    paused += action.status.state == action_pb2.PAUSED
            progress.show(written)
    progress.clear()
    target = "" if name == "-" else f" to {name}"
    skipped = f"; {counted(left_out, 'ended action')} left out" if left_out else ""
    click.echo(f"{counted(written, 'action')} exported{target}, {paused:,} of them paused{skipped}.", err=True)
    return Exit.NEGATIVE if damaged else Exit.OK
