"""An installation of real processes: schedulers behind wires, workers and clients on one store, watched over."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from clepsydra.tools.exits import Exit
from tests.chaos import side_log
from tests.chaos.client import history_path
from tests.chaos.processes import Node, command_line, python_module, run_command
from tests.chaos.proxy import Proxy
from tests.chaos.stores import ChaosStore
from tests.chaos.until import until
from tests.end_to_end.processes import address_in

# Short lives, so that a run sees many of them end.
SETTINGS = {
    "worker.lease_ms": 3_000,
    "worker.grace_ms": 1_000,
    "worker.lock_life_ms": 2_000,
    "worker.heartbeat_ms": 500,
    "worker.drain_ms": 10_000,
}
# A pause beyond this outlives the shard locks.
LOCK_LIFE_S = SETTINGS["worker.lock_life_ms"] / 1000

_WATCH_S = 0.05
_DEFECT = "defect of"
# More of them tell no more: then nothing is started again, and the run comes to its end.
_TROUBLES_MAX = 20
_AUDIT_TRIES = 40
_AUDIT_PAUSE_S = 0.5


class Clients(NamedTuple):
    """How many client processes there are, and what they shall do."""

    number: int
    quota_each: int
    seed: int


class World:
    """`async with` starts everything and, in the end, ends whatever is left of it."""

    def __init__(
        self,
        folder: Path,
        store: ChaosStore,
        *,
        schedulers: int = 1,
        workers: int = 2,
        clients: Clients | None = None,
        settings: dict[str, int] = SETTINGS,
        shards: int = 8,
        handlers: str = "tests.chaos.handlers",
        variables: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.store = store
        self.side_log = folder / "side.log"
        self.wires = [Proxy() for _ in range(schedulers)]
        self.schedulers: list[Node] = []
        self.workers: list[Node] = []
        self.clients: list[Node] = []
        # What went wrong without being asked for: each is a violation.
        self.troubles: list[str] = []
        # What happened, by name: faults, audits, restarts.
        self.events: Counter[str] = Counter()
        self._numbers = (schedulers, workers)
        self._clients = clients
        self._settings = settings
        self._shards = shards
        self._handlers = handlers
        # For the workers' environment.
        self._variables = variables or {}
        self._watching: asyncio.Future[None] | None = None
        self._auditing: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    def nodes(self) -> Iterator[Node]:
        yield from (*self.schedulers, *self.workers, *self.clients)

    def servers(self) -> list[Node]:
        return [*self.schedulers, *self.workers]

    def histories(self) -> list[Path]:
        return [history_path(self.folder, node.name) for node in self.clients]

    @property
    def server(self) -> str:
        """The first scheduler, as clients reach it."""
        return self.wires[0].address

    async def audit(self) -> None:
        """`clepsydra audit`, as soon as the store can be read; a finding is a trouble."""
        for _ in range(_AUDIT_TRIES):
            code, said = await run_command("audit", "--json", "--store", self.store.url)
            if code != Exit.UNAVAILABLE:
                break
            self.events["audits put off"] += 1
            await asyncio.sleep(_AUDIT_PAUSE_S)
        self.events["audits"] += 1
        if code != Exit.OK:
            self.troubles.append(f"the audit ended with {code}: {said}")

    def audit_beside(self) -> None:
        """The same, while the run goes on; one audit at a time, for each reads everything."""
        if self._auditing is None or self._auditing.done():
            self._auditing = asyncio.ensure_future(self.audit())

    async def end_of_audits(self) -> None:
        if self._auditing is not None:
            await self._auditing

    async def audited(self) -> dict[str, int]:
        """What the audit counts."""
        code, said = await run_command("audit", "--json", "--store", self.store.url)
        assert code == Exit.OK, said
        found: dict[str, int] = json.loads(said)
        return found

    async def ready(self) -> None:
        """Wait until every server serves."""
        for node in self.schedulers:
            await until(lambda node=node: "listens on" in node.said(), f"{node.name} listens")  # type: ignore[misc]
        for node in self.workers:
            await until(lambda node=node: "the worker has started" in node.said(), f"{node.name} works")  # type: ignore[misc]
        self._connect()

    def tails(self) -> str:
        return "\n".join(node.tail() for node in self.nodes())

    async def _start(self) -> None:
        await self.store.start()
        code, said = await run_command("init", "--store", self.store.url, "--shards", str(self._shards))
        assert code == Exit.OK, said
        for wire in self.wires:
            await wire.start()
        await self._place_nodes()
        for node in self.nodes():
            node.start()
        self._watching = asyncio.ensure_future(self._watch())

    async def _place_nodes(self) -> None:
        settings = [argument for key, value in self._settings.items() for argument in ("--set", f"{key}={value}")]
        schedulers, workers = self._numbers
        for name in _names("scheduler", schedulers):
            url = await self.store.url_for(name)
            arguments = command_line("scheduler", "--listen", "127.0.0.1:0", "--store", url, *settings)
            self.schedulers.append(Node(name, arguments, self.folder, {}))
        for name in _names("worker", workers):
            url = await self.store.url_for(name)
            arguments = command_line("worker", "--handlers", self._handlers, "--store", url, *settings)
            variables = {side_log.VARIABLE: str(self.side_log), **self._variables}
            self.workers.append(Node(name, arguments, self.folder, variables))
        if self._clients is None:
            return
        servers = ",".join(wire.address for wire in self.wires)
        common = ["--servers", servers, "--folder", str(self.folder), "--quota", str(self._clients.quota_each)]
        for name in _names("client", self._clients.number):
            arguments = python_module("tests.chaos.client", "--name", name, "--seed", str(self._clients.seed), *common)
            self.clients.append(Node(name, arguments, self.folder, {}))

    async def _end(self) -> None:
        for beside in (self._watching, self._auditing):
            if beside is not None:
                beside.cancel()
                await asyncio.wait([beside])
        for node in self.nodes():
            node.kill()
        for wire in self.wires:
            await wire.close()
        await self.store.close()
        if self._watching is not None and not self._watching.cancelled():
            # It never ends by itself, unless by a mistake of its own.
            self._watching.result()

    async def _watch(self) -> None:
        """Lead wires to where schedulers listen, and start again what ended by itself, as an operator's tools would."""
        while True:
            await asyncio.sleep(_WATCH_S)
            self._connect()
            for node in self.nodes():
                if node.wanted and not node.is_running:
                    self._ended_by_itself(node)

    def _connect(self) -> None:
        for wire, node in zip(self.wires, self.schedulers, strict=True):
            said = node.said() if node.is_running else ""
            wire.upstream = address_in(said) if " listens on " in said else None

    def _ended_by_itself(self, node: Node) -> None:
        if node in self.clients and node.exit_code == 0:
            node.wanted = False
            return
        # Without a store a server cannot start, and says so; whatever else ends it is a defect.
        if node.exit_code == Exit.UNAVAILABLE and node not in self.clients:
            self.events["servers that found no store"] += 1
        else:
            self.troubles.append(f"{node.name} ended by itself with {node.exit_code}:\n{node.tail()}")
        if len(self.troubles) < _TROUBLES_MAX:
            node.start()
        else:
            node.wanted = False

    def defects(self) -> list[str]:
        """What the servers themselves call a defect."""
        return [
            f"{node.name} says: {line}"
            for node in self.servers()
            for line in node.log.read_text(errors="replace").splitlines()
            if _DEFECT in line or '"level":"critical"' in line
        ]


def _names(role: str, count: int) -> Sequence[str]:
    return [f"{role}-{n}" for n in range(1, count + 1)]
