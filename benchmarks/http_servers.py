"""`python -m benchmarks.http_servers FOLDER GOOD SILENT NAMES`: servers for the benchmarks' HTTP actions.

On the port GOOD every request is answered at once, and noted with the time for which it was planned. On the port
SILENT, of every address of this machine, requests are accepted and never answered. On the UDP port NAMES, a name server
takes questions and never answers.
"""

import asyncio
import sys
from datetime import datetime
from pathlib import Path

from aiohttp import web

from clepsydra.core.clock import SystemClock
from clepsydra.core.times import SECOND_US


async def serve(folder: Path, good: int, silent: int, names: int) -> None:
    clock = SystemClock()
    with (folder / "starts-http").open("ab", buffering=0) as starts:

        async def answer(request: web.Request) -> web.Response:
            planned = datetime.fromisoformat(request.headers["Clepsydra-Scheduled-Time"]).timestamp()
            starts.write(b"%d %d\n" % (round(planned * SECOND_US), clock.now_us()))
            return web.Response()

        async def never_answer(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            while await reader.read(2**16):
                pass

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", good).start()
        await asyncio.start_server(never_answer, "0.0.0.0", silent, backlog=4096)  # noqa: S104 (all of 127.0.0.0/8)
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", names))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), *map(int, sys.argv[2:])))
