"""The same job for Clepsydra's workers, registered to take a batch, as pg-boss's are."""

from benchmarks.peers.drivers.job import run
from benchmarks.peers.drivers.protocol import ready
from clepsydra.worker import handler


@handler("job", batch=1000)
async def jobs(asked_for: list[dict[str, int]]) -> None:
    for asked in asked_for:
        run(asked["n"], asked["at"])


ready()
