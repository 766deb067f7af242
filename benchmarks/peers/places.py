"""Where the stores of measurements are: databases of the server, or files; empty, or copies of one that was filled."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks.peers.server import Databases
from benchmarks.peers.setup import Setup
from benchmarks.peers.tool import StoreKind, Tool

# Jobs that wait in a full store: far away, and with numbers that no job that runs has.
_FAR_MS = 10 * 3_600_000
_FAR_NUMBER = 1_000_000
_FILL_S = 1_800.0


class Places:
    """All of them lie in one folder, on the disk that is measured."""

    def __init__(self, folder: Path, databases: Databases) -> None:
        self._folder = folder
        self._databases = databases
        self._numbers = count(1)
        self._full: dict[tuple[str, int], str] = {}

    @contextlib.contextmanager
    def empty(self, tool: Tool) -> Iterator[Setup]:
        """The tool on an empty store, not installed yet."""
        with self._place(tool) as (folder, name), Setup(tool, folder, self._made(tool, name), self._databases) as setup:
            yield setup

    @contextlib.contextmanager
    def full(self, tool: Tool, stored: int) -> Iterator[Setup]:
        """The tool on a copy of a store that holds so many jobs of the far future. It is filled once and for all."""
        filled = self._full.get((tool.name, stored)) or self._filled(tool, stored)
        with (
            self._place(tool) as (folder, name),
            Setup(tool, folder, self._made(tool, name, filled), self._databases) as setup,
        ):
            os.sync()
            yield setup

    def _filled(self, tool: Tool, stored: int) -> str:
        name = f"{tool.name.replace('-', '_')}_full"
        with Setup(tool, self._folder / name, self._made(tool, name), self._databases) as setup:
            setup.ask("install", tool.lateness)
            setup.ask(
                "fill", tool.creates, _FILL_S, count=stored, lead_ms=_FAR_MS, step_us=1000, first_number=_FAR_NUMBER
            )
            setup.ask("settle", tool.default, _FILL_S)
            setup.tidy()
        self._full[tool.name, stored] = name
        return name

    @contextlib.contextmanager
    def _place(self, tool: Tool) -> Iterator[tuple[Path, str]]:
        name = f"{tool.name.replace('-', '_')}_{next(self._numbers)}"
        folder = self._folder / name
        try:
            yield folder, name
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if tool.store is StoreKind.POSTGRES:
                self._databases.drop(name)

    def _made(self, tool: Tool, name: str, filled: str | None = None) -> str:
        """Make the store; returns its URL."""
        if tool.store is StoreKind.POSTGRES:
            self._databases.drop(name)
            return self._databases.create(name, filled)
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if filled:
            for file in (self._folder / filled).glob("store.db*"):
                shutil.copy(file, folder / file.name)
        return f"sqlite:///{folder / 'store.db'}"


@contextlib.contextmanager
def opened(databases: Databases) -> Iterator[Places]:
    with tempfile.TemporaryDirectory(prefix="clepsydra-peers-") as folder:
        yield Places(Path(folder), databases)
