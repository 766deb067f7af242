"""Signals and gRPC for the whole test session.

Every child process must start as it would start from a terminal.

A child inherits ignored signals. `nohup` and background jobs of a shell ignore SIGINT, and a command that is stopped
by Ctrl-C would then never stop. pytest loads this file in its own process and in each worker of xdist.

gRPC ends its polling thread when its last object is collected, and waits for it: for ever, if that happens in a test
without an event loop in which a call could still end. So its objects are never the last ones here.
"""

import signal

import grpc


def pytest_configure() -> None:
    grpc.aio.init_grpc_aio()  # type: ignore[attr-defined]  # the stubs do not know it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
