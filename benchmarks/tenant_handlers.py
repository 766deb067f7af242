"""What the workers of `benchmarks.capacity` and `benchmarks.tenants` execute: slow functions beside quick notes."""

import os
import time
from functools import partial

from aiohttp.resolver import AsyncResolver

from benchmarks import handlers
from clepsydra.worker import handler
from clepsydra.worker.targets import http

__all__ = ["handlers"]

# A name server that answers nothing, for names that are not in /etc/hosts.
if "BENCHMARK_NAME_SERVER" in os.environ:
    port = int(os.environ["BENCHMARK_NAME_SERVER"])
    vars(http)["AsyncResolver"] = partial(AsyncResolver, nameservers=["127.0.0.1"], udp_port=port)


@handler("slow-function")
def slow_function() -> None:
    time.sleep(1)


@handler("slower-function")
def slower_function() -> None:
    time.sleep(12)
