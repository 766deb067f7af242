"""Clepsydra: settings are `scheduler` and `worker`, keys of its configuration, given to its commands with `--set`.

With `batch_handler` the job is registered to take a batch. Jobs are created through gRPC, at a scheduler process that
is started for it. The worker is the installed command.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import grpc

from benchmarks.creates import OPTIONS, action, batch
from benchmarks.installation import Installation
from benchmarks.peers.drivers.protocol import AsyncDriver, Job, main, payload_of
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub

_HANDLER = "job"
_HANDLERS = "benchmarks.peers.drivers.clepsydra_handlers"
_BATCH_HANDLERS = "benchmarks.peers.drivers.clepsydra_batch_handlers"


class Clepsydra(AsyncDriver):
    async def install(self) -> None:
        self._installation()

    async def open(self) -> None:
        self._running = self._installation()
        address = await asyncio.to_thread(self._running.scheduler, *self._flags("scheduler"))
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._stub = SchedulerServiceStub(self._channel)  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        await self._channel.close(None)
        await asyncio.to_thread(self._running.__exit__)

    async def create_one(self, job: Job) -> None:
        await self._stub.CreateAction(action(job.at_us, _HANDLER, payload_of(job)))

    async def create_many(self, jobs: list[Job]) -> None:
        request = batch([(job.at_us, payload_of(job)) for job in jobs], _HANDLER)
        response = await self._stub.BatchCreateActions(request)
        refused = [result.error for result in response.results if result.HasField("error")]
        if refused:
            raise RuntimeError(f"a create was refused: {refused[0]}")

    async def settle(self) -> None:
        """Let a worker move what has come in to where it waits for its time."""
        with self._installation() as running:
            running.worker(*self._flags("worker"))
            while await asyncio.to_thread(_incoming, running):  # noqa: ASYNC110 - it happens in another process
                await asyncio.sleep(1.0)

    async def work(self) -> None:
        installation = self._installation()
        os.environ.update(installation.environment())
        command = installation.line("worker", "--handlers", self._handlers(), *self._flags("worker"))
        os.execv(command[0], command)  # noqa: ASYNC221 - nothing comes after it

    async def check(self) -> None:
        try:
            self._installation().audit_is_clean()
        except subprocess.CalledProcessError as failed:
            raise RuntimeError(f"the audit is not clean: {failed.stdout}{failed.stderr}") from None

    def _installation(self) -> Installation:
        return Installation(Path.cwd(), self.request.store, handlers=self._handlers())

    def _handlers(self) -> str:
        return _BATCH_HANDLERS if self.settings.get("batch_handler") else _HANDLERS

    def _flags(self, section: str) -> list[str]:
        settings: dict[str, Any] = self.settings.get(section, {})
        return [flag for key, value in settings.items() for flag in ("--set", f"{section}.{key}={value}")]


def _incoming(running: Installation) -> int:
    rows: int = json.loads(running.command("stats", "--json"))["incoming_rows"]
    return rows


if __name__ == "__main__":
    main(Clepsydra)
