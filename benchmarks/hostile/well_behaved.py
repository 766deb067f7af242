"""A well-behaved caller, in a process of its own: `python -m benchmarks.hostile.well_behaved ADDRESS SECONDS`.

It creates an action every 20 ms and prints how long that took. A call starts at its time, even if the one before has
not returned: callers do not wait for each other.
"""

import asyncio
import json
import sys
import time

import grpc
import uvloop

from benchmarks.creates import action
from clepsydra.core.times import HOUR_US
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub

_INTERVAL_S = 0.02
_TIMEOUT_S = 60.0


async def call(address: str, seconds: float) -> dict[str, float]:
    request = action(time.time_ns() // 1000 + HOUR_US)
    took_ms: list[float] = []
    failed = 0
    async with grpc.aio.insecure_channel(address) as channel:
        stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]

        async def create(at: float) -> None:
            nonlocal failed
            await asyncio.sleep(at - time.monotonic())
            try:
                await stub.CreateAction(request, timeout=_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                failed += 1
                sys.stderr.write(f"{error.code().name}: {error.details()}\n")
            took_ms.append((time.monotonic() - at) * 1000)

        start = time.monotonic()
        await asyncio.gather(*(create(start + n * _INTERVAL_S) for n in range(int(seconds / _INTERVAL_S))))
    took_ms.sort()
    return {
        "calls": len(took_ms),
        "failed": failed,
        "p50_ms": took_ms[len(took_ms) // 2],
        "p99_ms": took_ms[len(took_ms) * 99 // 100],
        "most_ms": took_ms[-1],
    }


def main() -> None:
    address, seconds = sys.argv[1:]
    sys.stdout.write(json.dumps(uvloop.run(call(address, float(seconds)))) + "\n")


if __name__ == "__main__":
    main()
