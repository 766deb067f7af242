"""Adds a file of actions in batches. Each line succeeds or fails by itself, and a failure names its line."""

import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import click
from google.protobuf import json_format

from clepsydra.tools.client import Client, failure_of
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.output import Counter, message_as_dict, print_json
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest

# Well below the limits of a call.
_BATCH_ITEMS = 500
_BATCH_BYTES = 4 * 1024 * 1024


class Line(NamedTuple):
    number: int
    request: CreateActionRequest


class FileOfActions:
    def __init__(self, name: str, request_id: str, *, validate_only: bool, as_json: bool) -> None:
        self._name = name
        self._request_id = request_id
        self._validate_only = validate_only
        self._as_json = as_json
        self._added = 0
        self._failed = 0
        self._counter = Counter("added")

    def add(self, client: Client) -> int:
        """Returns the exit code: 0 if every line was added."""
        with opened(self._name) as file:
            for batch in _batches(self._lines(file)):
                self._add_batch(client, batch)
        self._counter.clear()
        if not self._as_json:
            done = "are valid" if self._validate_only else "were added"
            click.echo(f"{self._added:,} of {self._added + self._failed:,} actions {done}.")
        return Exit.NEGATIVE if self._failed else Exit.OK

    def _add_batch(self, client: Client, batch: list[Line]) -> None:
        request = BatchCreateActionsRequest(requests=[line.request for line in batch])
        response = client.call("BatchCreateActions", request)
        for line, result in zip(batch, response.results, strict=True):
            if result.HasField("error"):
                self._fail(line.number, str(failure_of(result.error)))
                continue
            self._added += 1
            if self._as_json:
                print_json(message_as_dict(result.action), in_one_line=True)
        self._counter.show(self._added)

    def _lines(self, file: Iterable[bytes]) -> Iterator[Line]:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            request = CreateActionRequest(validate_only=self._validate_only)
            if self._request_id:
                request.request_id = f"{self._request_id}-{number}"
            try:
                request.action.CopyFrom(read_action(text))
            except Failure as error:
                self._fail(number, str(error))
            else:
                yield Line(number, request)

    def _fail(self, number: int, sentence: str) -> None:
        self._failed += 1
        self._counter.clear()
        click.echo(f"clepsydra: {'<stdin>' if self._name == '-' else self._name}:{number}: {sentence}", err=True)


def read_action(text: bytes) -> ScheduledAction:
    """An action in protobuf's JSON."""
    try:
        return json_format.Parse(text, ScheduledAction())
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise Failure(f"not an action in JSON, as `clepsydra get --json` prints it: {reason}", Exit.USAGE) from error


def opened(name: str) -> BinaryIO:
    """A file, or standard input if its name is a dash."""
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
