"""Records of what happened, one JSON object to a line, that outlive a kill of whoever writes them.

A record is written in one piece, after a line feed of its own: what a kill or a full disk has torn stays on its line
and spoils no other. A torn record is as good as none: its writer was told, or is dead.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


class Appender:
    """Any number of processes may append to one file."""

    def __init__(self, path: str | Path, *, synced: bool) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        self._synced = synced
        self._turn = threading.Condition()
        self._syncs_begun = self._syncs_done = 0

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Raises OSError if they are not all written."""
        text = "".join(f"\n{json.dumps(record, separators=(',', ':'))}\n" for record in records).encode()
        written = os.write(self._file, text)
        if written != len(text):
            raise OSError(f"only {written} of {len(text)} bytes were written")
        if self._synced:
            self._sync()

    def _sync(self) -> None:
        """Many threads append at once: one sync serves all who wrote before it began."""
        with self._turn:
            wanted = self._syncs_begun + 1
            # Whoever syncs does so alone; the others wait for its end, and then one of them does.
            self._turn.wait_for(lambda: self._syncs_done == self._syncs_begun or self._syncs_done >= wanted)
            if self._syncs_done >= wanted:
                return
            self._syncs_begun += 1
        try:
            os.fsync(self._file)
        except OSError:
            with self._turn:
                self._syncs_begun -= 1
                self._turn.notify_all()
            raise
        with self._turn:
            self._syncs_done = self._syncs_begun
            self._turn.notify_all()

    def close(self) -> None:
        os.close(self._file)


def entries_in(path: Path) -> Iterator[dict[str, Any]]:
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
