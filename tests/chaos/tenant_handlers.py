"""What chaos executes, in a worker whose name server never answers."""

import os
from functools import partial

from aiohttp.resolver import AsyncResolver

from clepsydra.worker.targets import http
from tests.chaos import handlers

__all__ = ["handlers"]

# The port of the name server. Names in /etc/hosts need none.
VARIABLE = "CHAOS_NAME_SERVER"

vars(http)["AsyncResolver"] = partial(
    AsyncResolver, nameservers=["127.0.0.1"], udp_port=int(os.environ.get(VARIABLE, "53"))
)
