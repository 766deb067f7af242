"""Clepsydra, as installed. Jobs are created through gRPC, at a scheduler process beside the client. Python.

Everything is at its defaults, durability included: a commit is on disk when it is acknowledged, `synchronous = FULL` on
SQLite and `synchronous_commit = on` on PostgreSQL. In bulk means 1,000 in a call, as for graphile-worker, but eight
calls at a time, not four: each does better so. A worker takes up to 2,000 into its hands, as graphile-worker does. A
backlog is also measured as docs/performance.md says to tune for it: the job is a handler that takes a batch of up to
1,000, as pg-boss's does.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool
from clepsydra.store.postgres.session import SETTINGS

assert SETTINGS["synchronous_commit"] == "on"

# The client's event loop, not the server's.
_CREATES = {"uvloop": True, "batch": 1000, "batches_in_flight": 8}

# What has ended waits for its purge, a day later; what runs is at the end of its lease, half a minute away.
_UNFINISHED_SQLITE = """
    WITH soon AS (SELECT (unixepoch() + 3600) * 1000000 AS at)
    SELECT (SELECT count(*) FROM incoming_queue, soon WHERE scheduled_at < soon.at)
         + (SELECT count(*) FROM processing_queue, soon WHERE scheduled_at < soon.at)
"""
_UNFINISHED_POSTGRES = """
    WITH soon AS (SELECT (extract(epoch FROM now()) + 3600) * 1000000 AS at)
    SELECT (SELECT count(*) FROM clepsydra.incoming_queue, soon WHERE scheduled_at < soon.at)
         + (SELECT count(*) FROM clepsydra.processing_queue, soon WHERE scheduled_at < soon.at)
"""

_BATCHED = {"batch_handler": True}

_RECOVERS = "by itself, when the lease of 30 s and its grace of 5 s have passed"

ON_SQLITE = Tool(
    name="clepsydra-sqlite",
    store=StoreKind.SQLITE,
    language=Language.OURS,
    driver="clepsydra",
    about=__doc__,
    unfinished=_UNFINISHED_SQLITE,
    pace_per_s=8_000,
    creates=_CREATES,
    drain=_BATCHED,
    recovers=_RECOVERS,
    recovery_wait_s=60.0,
    kill_jobs=20_000,
)

ON_POSTGRES = Tool(
    name="clepsydra-postgres",
    store=StoreKind.POSTGRES,
    language=Language.OURS,
    driver="clepsydra",
    about=__doc__,
    unfinished=_UNFINISHED_POSTGRES,
    pace_per_s=4_000,
    creates=_CREATES,
    drain=_BATCHED,
    recovers=_RECOVERS,
    recovery_wait_s=60.0,
    kill_jobs=20_000,
)
