"""What Clepsydra's workers execute: the same job as the other tools'."""

import json

from benchmarks.peers.drivers.protocol import ran, ready
from clepsydra.worker import handler


@handler("job")
async def job(payload: bytes) -> None:
    asked = json.loads(payload)
    ran(asked["n"], asked["at"])


ready()
