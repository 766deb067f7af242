"""Files of actions in JSON, one a line: read with limits, and sent in batches in which each line fails on its own.

The reports of failed lines come in the order of the file, whether this process or the scheduler refuses a line.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import click
from google.protobuf import json_format

from clepsydra.core.limits import REQUEST_BYTES
from clepsydra.tools.client import failure_from_item
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.format.json_input import parse_message
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.tools.format.text import printable_lines
from clepsydra.v1.action_pb2 import ScheduledAction

# Well below the limits of a call.
_BATCH_ITEMS = 500
_BATCH_BYTES = 4 * 1024 * 1024

# No valid action is as long as the largest request.
_LINE_BYTES = REQUEST_BYTES


class Line(NamedTuple):
    number: int
    # What to send for the line; or why the line is refused before anything is sent.
    request: Any


# Begins a call with these requests, and returns a function that waits for their results.
Start = Callable[[list[Any]], Callable[[], Iterable[Any]]]


class _Sent(NamedTuple):
    batch: list[Line]
    finish: Callable[[], Iterable[Any]]


class ActionFile:
    """A file with one action a line. `request_of` makes the request of a line, from its number, text and action.

    It refuses the line by a Failure, and leaves it out by returning None.
    """

    def __init__(self, name: str, request_of: Callable[[int, bytes, ScheduledAction], Any]) -> None:
        self._name = name
        self._request_of = request_of
        self.failed = 0

    def send(self, start: Start, progress: ProgressCounter) -> Iterator[list[Any]]:
        """Send the file in batches. Yields the results of each batch without its failures, which are reported.

        While the scheduler works on a batch, the next one is read.
        """
        sent: _Sent | None = None
        try:
            for batch in self._batches():
                requests = [line.request for line in batch if not isinstance(line.request, Failure)]
                before, sent = sent, _Sent(batch, start(requests) if requests else list)
                if before is not None:
                    yield list(self._results(before, progress))
        except (KeyboardInterrupt, Failure):
            # What was sent counts, whatever went wrong with the rest.
            if sent is not None:
                yield list(self._results(sent, progress))
            raise
        if sent is not None:
            yield list(self._results(sent, progress))

    def _results(self, sent: "_Sent", progress: ProgressCounter) -> Iterator[Any]:
        results = iter(enumerate(sent.finish()))
        for line in sent.batch:
            if isinstance(line.request, Failure):
                self._report(line.number, str(line.request), progress)
                continue
            index, result = next(results)
            if result.HasField("error"):
                # The line says where; the place in the batch would only confuse.
                sentence = str(failure_from_item(result.error, f"requests[{index}].action."))
                self._report(line.number, sentence, progress)
            else:
                yield result

    def _batches(self) -> Iterator[list[Line]]:
        with open_input(self._name) as file:
            batch: list[Line] = []
            size = 0
            for line in self._lines(file):
                batch.append(line)
                size += 0 if isinstance(line.request, Failure) else line.request.ByteSize()
                if len(batch) == _BATCH_ITEMS or size >= _BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch

    def _lines(self, file: BinaryIO) -> Iterator[Line]:
        number = 0
        while text := file.readline(_LINE_BYTES + 1):
            number += 1
            if len(text) > _LINE_BYTES:
                raise Failure(
                    f"{self._place(number)}: the line is longer than any action: not a file of actions", Exit.USAGE
                )
            if not text.strip():
                continue
            try:
                request = self._request_of(number, text, parse_action(text))
            except Failure as failure:
                request = failure
            if request is not None:
                yield Line(number, request)

    def _report(self, number: int, sentence: str, progress: ProgressCounter) -> None:
        self.failed += 1
        progress.clear()
        click.echo(printable_lines(f"clepsydra: {self._place(number)}: {sentence}"), err=True)

    def _place(self, number: int) -> str:
        return f"{'<stdin>' if self._name == '-' else self._name}:{number}"


def read_action(name: str) -> ScheduledAction:
    """The one action of a whole file."""
    with open_input(name) as file:
        text = file.read(_LINE_BYTES + 1)
    if len(text) > _LINE_BYTES:
        raise Failure(f"the file {name!r} is longer than any action", Exit.USAGE)
    return parse_action(text)


def parse_action(text: bytes) -> ScheduledAction:
    """An action in protobuf's JSON."""
    what = "not an action in JSON, as `clepsydra get --json` prints it"
    if text.lstrip().startswith(b"["):
        # Protobuf's parser takes an empty list for an empty message.
        raise Failure(f"{what}: a list, not an object", Exit.USAGE)
    try:
        return parse_message(text, ScheduledAction)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise Failure(f"{what}: {reason}", Exit.USAGE) from error


def open_input(name: str) -> BinaryIO:
    """Open a file; the name - is standard input."""
    try:
        return open(sys.stdin.fileno() if name == "-" else name, "rb", closefd=name != "-")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(f"the file {name!r} cannot be read: {reason}", Exit.USAGE) from error
