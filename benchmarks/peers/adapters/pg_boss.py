"""pg-boss on PostgreSQL, Node.js.

By default a worker takes one job every 2 s, so 2,000 jobs in 20 s are far beyond it. For a backlog: two batches of
1,000 at a time, and no pause while they come back full; more would be a large part of the backlog, taken before its
first job starts the clock. For jobs on time: the shortest pause that it allows, 0.5 s; its LISTEN/NOTIFY tells of new
jobs, not of those whose time comes. For dead workers: heartbeats, 10 s at least, looked at every second.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

_BATCHES = {"batchSize": 1000, "burstWhenBatchFull": True}

TOOL = Tool(
    name="pg-boss",
    store=StoreKind.POSTGRES,
    language=Language.NODE,
    driver="pg-boss",
    about=__doc__,
    unfinished="SELECT count(*) FROM pgboss.job WHERE name = 'job' AND state < 'completed' AND start_after <= now()",
    pace_per_s=8_000,
    default_pause_s=2.0,
    least_pause_s=0.5,
    creates={"boss": {"max": 16}, "batch": 1000, "batches_in_flight": 4},
    drain={"work": {**_BATCHES, "localConcurrency": 2}},
    lateness={"work": {**_BATCHES, "pollingIntervalSeconds": 0.5}},
    recovery={
        "queue": {"heartbeatSeconds": 10},
        "boss": {"superviseIntervalSeconds": 1, "monitorIntervalSeconds": 1},
        "work": {**_BATCHES, "localConcurrency": 2, "pollingIntervalSeconds": 0.5},
    },
    recovers="by itself when a job's heartbeat is 10 s old, the shortest that it allows; by default heartbeats are "
    "off, and it takes 15 minutes",
    recovery_wait_s=60.0,
    kill_jobs=20_000,
)
