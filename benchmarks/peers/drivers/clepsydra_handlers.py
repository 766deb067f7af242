"""What Clepsydra's workers execute: the same job as the other tools'."""

from benchmarks.peers.drivers.job import run_async
from benchmarks.peers.drivers.protocol import ready
from clepsydra.worker import handler


@handler("job")
async def job(asked: dict[str, int]) -> None:
    await run_async(asked["n"], asked["at"])


ready()
