"""The same job for Clepsydra's workers, registered to take a batch, as pg-boss's are."""

import json

from benchmarks.peers.drivers.job import run
from benchmarks.peers.drivers.protocol import ready
from clepsydra.worker import handler


@handler("job", batch=1000)
async def jobs(payloads: list[bytes]) -> None:
    for payload in payloads:
        asked = json.loads(payload)
        run(asked["n"], asked["at"])


ready()
