"""procrastinate on PostgreSQL, Python.

A worker fetches and finishes every job by itself, with as many at a time as it is told (one by default). For jobs on
time: it is told of new jobs, but polls for those whose time comes, every 5 s by default. For dead workers: the periodic
task that its documentation gives, every 10 s, since it does not take up their jobs by itself.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

_MANY = {"concurrency": 16, "pool": 20, "uvloop": True}

TOOL = Tool(
    name="procrastinate",
    store=StoreKind.POSTGRES,
    language=Language.PYTHON,
    driver="procrastinate",
    about=__doc__,
    unfinished="SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'job' AND status IN ('todo', 'doing') "
    "AND scheduled_at <= now()",
    pace_per_s=2_000,
    default_pause_s=5.0,
    least_pause_s=0.01,
    creates={"pool": 16, "uvloop": True, "batch": 1000, "batches_in_flight": 4},
    drain={**_MANY, "delete_jobs": "always"},
    lateness={**_MANY, "fetch_job_polling_interval": 0.01},
    recovery={**_MANY, "fetch_job_polling_interval": 1, "retry_stalled_s": 10},
    recovers="by a periodic task of one's own, once the worker's heartbeat is 30 s old; not at all without it",
    recovery_wait_s=75.0,
)
