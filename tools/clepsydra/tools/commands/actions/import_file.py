"""`clepsydra import`: takes over the actions of an export, with their status."""

import hashlib
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from clepsydra.core.action.state_machine import ENDED
from clepsydra.tools.client import Client, scheduler_client
from clepsydra.tools.commands.actions.action_file import ActionFile
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.json_output import print_json
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import ImportActionRequest, ImportActionsRequest, ImportActionsResponse

_PROGRESS_LINE_EVERY = 100_000
_TAKEN = ("created", "replaced", "repeated")
# The keys of the summary, and how it reads.
_PHRASES = {
    "created": "created",
    "replaced": "replaced",
    "repeated": "taken by an earlier run of this import",
    "existing": "skipped because they exist",
    "ended": "skipped because they have ended (--ended takes them too)",
    "failed": "refused",
}
_OUTCOMES = {
    ImportActionsResponse.CREATED: "created",
    ImportActionsResponse.REPLACED: "replaced",
    ImportActionsResponse.SKIPPED: "existing",
    ImportActionsResponse.REPEATED: "repeated",
}


@click.command(
    "import",
    epilog="""\b
Examples:
  clepsydra import actions.jsonl
  clepsydra export --server old:7070 | clepsydra import - --server new:7070
  clepsydra import actions.jsonl --existing replace
  clepsydra import actions.jsonl --ended

Each line is an action with its status, as `clepsydra export` writes it. Nothing is planned anew: a periodic action
keeps its next occurrence, retries go on, a paused action stays paused. Ended actions are skipped unless --ended is
given.

An import that was interrupted, by whatever, goes on with the same command: what was taken is skipped. With --existing
replace, an action that an earlier run of the same import has taken is not set back; --request-id tells imports apart,
if the same lines are to be imported once more.""",
)
@click.argument("file", metavar="FILE", type=NAME_PARAMETER)
@click.option(
    "--existing",
    type=click.Choice(["skip", "replace", "error"]),
    default="skip",
    show_default=True,
    help="What to do with an action whose id exists.",
)
@click.option("--ended", is_flag=True, help="Take ended actions too: as a record, they do not run again.")
@click.option("--request-id", type=NAME_PARAMETER, help="A name of this import.")
@click.option("--validate-only", is_flag=True, help="Check everything and import nothing.")
@flags.as_json
@flags.server
@flags.with_settings
def import_command(
    settings: Settings,
    file: str,
    existing: str,
    ended: bool,
    request_id: str | None,
    validate_only: bool,
    as_json: bool,
) -> int:
    """Take over the actions of an export, with their status. FILE - is the standard input."""
    actions = _Import(file, existing, ended, request_id or "", validate_only)
    with scheduler_client(settings) as client:
        stopped_by = actions.run(client)
    actions.print_summary(as_json)
    if stopped_by is not None:
        return 128 + stopped_by
    return Exit.NEGATIVE if actions.counts["failed"] else Exit.OK


class _Import:
    def __init__(self, name: str, existing: str, ended: bool, request_id: str, validate_only: bool) -> None:
        self._existing = existing.upper()
        self._ended = ended
        self._request_id = request_id
        self._validate_only = validate_only
        self._file = ActionFile(name, self._request_of)
        self._progress = ProgressCounter("imported", _PROGRESS_LINE_EVERY)
        self.counts: Counter[str] = Counter()

    def run(self, client: Client) -> signal.Signals | None:
        """Import every line. Returns the signal that stopped it before the end, if any."""

        def start(requests: list[Any]) -> Callable[[], Iterable[Any]]:
            finish = client.start("ImportActions", ImportActionsRequest(requests=requests))
            return lambda: finish().results

        try:
            with _interrupted_by_sigterm():
                for results in self._file.send(start, self._progress):
                    self.counts.update(_OUTCOMES[result.outcome] for result in results)
                    self.counts["failed"] = self._file.failed
                    self._progress.show(self._taken)
        except KeyboardInterrupt as interrupted:
            self._progress.clear()
            click.echo(f"clepsydra: interrupted: {self._how_to_go_on()}", err=True)
            return signal.SIGTERM if interrupted.args else signal.SIGINT
        except Failure as error:
            self._progress.clear()
            if error.code is not Exit.UNAVAILABLE and not self.counts:
                raise
            raise Failure(f"{error}\n  {self._how_to_go_on()}", error.code) from error
        self._progress.clear()
        return None

    def print_summary(self, as_json: bool) -> None:
        if as_json:
            print_json({key: self.counts[key] for key in _PHRASES})
            return
        parts = [f"{self.counts[key]:,} {phrase}" for key, phrase in _PHRASES.items() if self.counts[key]]
        valid = "Valid, and nothing was imported: " if self._validate_only else ""
        click.echo(f"{valid}{', '.join(parts) or 'there was nothing to import'}.")

    @property
    def _taken(self) -> int:
        return sum(self.counts[key] for key in _TAKEN)

    def _how_to_go_on(self) -> str:
        return f"{self._taken + self.counts['existing']:,} actions were taken so far; the same command goes on"

    def _request_of(self, _number: int, text: bytes, action: ScheduledAction) -> ImportActionRequest | None:
        if not action.HasField("status"):
            raise Failure("the line has no status, so it is a new action: use `clepsydra add --from-file`", Exit.USAGE)
        if action.status.state in ENDED and not self._ended:
            self.counts["ended"] += 1
            return None
        request = ImportActionRequest(action=action, existing=self._existing, validate_only=self._validate_only)
        if self._request_id or self._existing != "SKIP":
            # What is skipped by its id needs no other mark. The mark is that of the line, wherever it stands, and of
            # what is asked for: the same line with another flag is another request.
            asked = b"\0".join((self._existing.encode(), self._request_id.encode(), text.strip()))
            request.request_id = f"import-{hashlib.blake2b(asked, digest_size=16).hexdigest()}"
        return request


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the import as Ctrl-C does, with a count."""

    def interrupt(signum: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signum)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
