"""APScheduler 3 with its SQLAlchemy store, Python.

One process with a timer in memory, by design: a store belongs to one scheduler, and a scheduler that runs does not
notice what other processes put into its store, so jobs are created before it starts. A job is removed from the store
when it is handed to a thread, before it has run. The SQLite file is put into WAL mode, which makes it faster than by
default, and is synced at every commit. Jobs may run however late they are, which is not the default.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

_CANNOT = {
    "bulk": "it has no call that creates many jobs",
    "drain by two": "a store belongs to one scheduler process",
}
_RECOVERS = "not at all: a job is removed before it runs, and is lost if the process dies meanwhile"

ON_SQLITE = Tool(
    name="apscheduler",
    store=StoreKind.SQLITE,
    language=Language.PYTHON,
    driver="apscheduler",
    about=__doc__,
    unfinished="SELECT count(*) FROM apscheduler_jobs WHERE next_run_time <= unixepoch('subsec')",
    pace_per_s=500,
    drain={"threads": 4},
    lateness={"threads": 4},
    recovery={"threads": 16},
    recovers=_RECOVERS,
    cannot=_CANNOT,
    worker_comes_last=True,
    lead_ms=6_000,
)

ON_POSTGRES = Tool(
    name="apscheduler-postgres",
    store=StoreKind.POSTGRES,
    language=Language.PYTHON,
    driver="apscheduler",
    about=__doc__,
    unfinished="SELECT count(*) FROM apscheduler_jobs WHERE next_run_time <= extract(epoch FROM now())",
    pace_per_s=500,
    drain={"threads": 4},
    lateness={"threads": 4},
    recovery={"threads": 16},
    recovers=_RECOVERS,
    cannot=_CANNOT,
    worker_comes_last=True,
    lead_ms=6_000,
)
