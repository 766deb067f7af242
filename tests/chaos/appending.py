"""Records of what happened, one JSON object to a line, that outlive a kill of whoever writes them.

A record is written in one piece, after a line feed of its own: what a kill or a full disk has torn stays on its line
and spoils no other. A torn record is as good as none: its writer was told, or is dead.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


class Appender:
    """Any number of processes may append to one file."""

    def __init__(self, path: str | Path, *, synced: bool) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        self._synced = synced

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Raises OSError if they are not all written."""
        text = "".join(f"\n{json.dumps(record, separators=(',', ':'))}\n" for record in records).encode()
        written = os.write(self._file, text)
        if written != len(text):
            raise OSError(f"only {written} of {len(text)} bytes were written")
        if self._synced:
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def records_in(path: Path) -> Iterator[dict[str, Any]]:
    """The whole records of a file, in the order in which they were written."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                # Torn, or the empty line before a record.
                continue
            if isinstance(record, dict):
                yield record
