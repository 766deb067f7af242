"""Files of actions in JSON. `add` sends a file in batches: each line succeeds or fails on its own."""

import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import click
from google.protobuf import json_format

from clepsydra.tools.client import Client, failure_from_status
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest

# Well below the limits of a call.
_BATCH_ITEMS = 500
_BATCH_BYTES = 4 * 1024 * 1024


class Line(NamedTuple):
    number: int
    request: CreateActionRequest


class ActionFile:
    """A file with one action a line."""

    def __init__(self, name: str, request_id: str, *, validate_only: bool, as_json: bool) -> None:
        self._name = name
        self._request_id = request_id
        self._validate_only = validate_only
        self._as_json = as_json
        self._added = 0
        self._failed = 0
        self._progress = ProgressCounter("added")

    def add(self, client: Client) -> int:
        """Add every action. Returns the exit code: 0 if all lines succeeded."""
        with open_input(self._name) as file:
            for batch in _batches(self._lines(file)):
                self._add_batch(client, batch)
        self._progress.clear()
        if not self._as_json:
            done = "are valid" if self._validate_only else "were added"
            click.echo(f"{self._added:,} of {self._added + self._failed:,} actions {done}.")
        return Exit.NEGATIVE if self._failed else Exit.OK

    def _add_batch(self, client: Client, batch: list[Line]) -> None:
        request = BatchCreateActionsRequest(requests=[line.request for line in batch])
        response = client.call("BatchCreateActions", request)
        for line, result in zip(batch, response.results, strict=True):
            if result.HasField("error"):
                self._report_failure(line.number, str(failure_from_status(result.error)))
                continue
            self._added += 1
            if self._as_json:
                print_message(result.action, in_one_line=True)
        self._progress.show(self._added)

    def _lines(self, file: Iterable[bytes]) -> Iterator[Line]:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            request = CreateActionRequest(validate_only=self._validate_only)
            if self._request_id:
                request.request_id = f"{self._request_id}-{number}"
            try:
                request.action.CopyFrom(parse_action(text))
            except Failure as error:
                self._report_failure(number, str(error))
            else:
                yield Line(number, request)

    def _report_failure(self, number: int, sentence: str) -> None:
        self._failed += 1
        self._progress.clear()
        click.echo(f"clepsydra: {'<stdin>' if self._name == '-' else self._name}:{number}: {sentence}", err=True)


def parse_action(text: bytes) -> ScheduledAction:
    """An action in protobuf's JSON."""
    try:
        return json_format.Parse(text, ScheduledAction())
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise Failure(f"not an action in JSON, as `clepsydra get --json` prints it: {reason}", Exit.USAGE) from error


def open_input(name: str) -> BinaryIO:
    """Open a file; the name - is standard input."""
    try:
        return open(sys.stdin.fileno() if name == "-" else name, "rb", closefd=name != "-")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(f"the file {name!r} cannot be read: {reason}", Exit.USAGE) from error


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += line.request.ByteSize()
        if len(batch) == _BATCH_ITEMS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
