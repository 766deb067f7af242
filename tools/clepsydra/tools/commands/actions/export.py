"""`clepsydra export`: writes all actions, with their status, as JSON lines."""

from collections import Counter
from collections.abc import Iterable, Iterator

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
from clepsydra.v1.action_pb2 import ScheduledAction

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
    actions = _Export(ended)
    with scheduler_client(settings) as client, open_output(name) as stream:
        for page in pages(client, None, ""):
            stream.write(b"".join(actions.lines(page.actions)))
            actions.progress.show(actions.counts["exported"])
    actions.progress.clear()
    click.echo(actions.summary("" if name == "-" else f" to {name}"), err=True)
    return Exit.NEGATIVE if actions.counts["damaged"] else Exit.OK


class _Export:
    def __init__(self, ended: bool) -> None:
        self._ended = ended
        self.counts: Counter[str] = Counter()
        self.progress = ProgressCounter("exported", _PROGRESS_LINE_EVERY)

    def lines(self, actions: Iterable[ScheduledAction]) -> Iterator[bytes]:
        for action in actions:
            if not action.HasField("spec"):
                self.counts["damaged"] += 1
                self.progress.clear()
                click.echo(f"clepsydra: action {action.meta.id} cannot be decoded and is left out", err=True)
            elif action.status.state in ENDED and not self._ended:
                self.counts["left out"] += 1
            else:
                yield self._line(action)

    def summary(self, target: str) -> str:
        counts = self.counts
        running = (
            f", {counts['running']:,} running: these run again where they are imported" if counts["running"] else ""
        )
        left_out = f"; {counted(counts['left out'], 'ended action')} left out" if counts["left out"] else ""
        return (
            f"{counted(counts['exported'], 'action')} exported{target}, {counts['paused']:,} of them paused"
            f"{running}{left_out}."
        )

    def _line(self, action: ScheduledAction) -> bytes:
        self.counts["exported"] += 1
        self.counts["paused"] += action.status.state == action_pb2.PAUSED
        self.counts["running"] += action.HasField("running")
        # That it runs is a fact of this moment and of this place.
        action.ClearField("running")
        keep_key(action.status, action.meta.guid)
        return message_line(action)
