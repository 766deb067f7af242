"""The endpoint as a process: `python -m tests.ydb_endpoint --port 0` prints its port and serves until it is stopped."""

import argparse
import asyncio
import signal

from tests.ydb_endpoint.endpoint import DATABASE, Endpoint
from tests.ydb_endpoint.engine import Engine

# What it says instead of a version.
NAME = "the endpoint for tests"


async def _serve(port: int, trouble: float, version: str) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    endpoint = Endpoint(Engine(DATABASE, version=version))
    endpoint.faults.trouble = trouble
    await endpoint.start(port)
    try:
        print(endpoint.port, flush=True)  # noqa: T201 - the parent process reads the port here
        await stopped.wait()
    finally:
        await endpoint.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--trouble", type=float, default=0.0, help="how many of the texts meet a harmless fault, 0 to 1"
    )
    parser.add_argument("--version", default=NAME, help="what the server says that it is")
    chosen = parser.parse_args()
    asyncio.run(_serve(chosen.port, chosen.trouble, chosen.version))


if __name__ == "__main__":
    main()
