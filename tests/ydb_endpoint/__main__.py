"""The endpoint as a process: `python -m tests.ydb_endpoint --port 0` prints its port and serves until it is stopped."""

import argparse
import asyncio
import signal

from tests.ydb_endpoint.endpoint import Endpoint


async def _serve(port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    endpoint = Endpoint()
    await endpoint.start(port)
    try:
        print(endpoint.port, flush=True)  # noqa: T201 - the parent process reads the port here
        await stopped.wait()
    finally:
        await endpoint.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
