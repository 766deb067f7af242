"""What Clepsydra's workers execute: the same job as the other tools'."""

import json

from benchmarks.peers.drivers.job import run_async
from benchmarks.peers.drivers.protocol import ready
from clepsydra.worker import handler


@handler("job")
async def job(payload: bytes) -> None:
    asked = json.loads(payload)
    await run_async(asked["n"], asked["at"])


ready()
