"""A gRPC server that does nothing, or sends back what it got: `python -m benchmarks.empty_server PORT`."""

import asyncio
import sys
from typing import Any

import grpc
import uvloop


async def _empty(_request: bytes, _context: Any) -> bytes:
    return b""


async def _echo(request: bytes, _context: Any) -> bytes:
    return request


async def serve(port: int) -> None:
    server = grpc.aio.server()
    methods = {
        "Empty": grpc.unary_unary_rpc_method_handler(_empty),
        "Echo": grpc.unary_unary_rpc_method_handler(_echo),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("benchmark", methods),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
