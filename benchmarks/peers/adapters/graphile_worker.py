"""graphile-worker on PostgreSQL, Node.js.

For a backlog: the settings of its own documentation's performance page, which fetch jobs into a local queue and
complete them in batches, but 2,000 at a time, not 500: it drains half as much again so. More would be a large part of
the backlog, taken before its first job starts the clock. For jobs on time: it is told of new jobs, but polls for those
whose time comes, every 2 s by default; so it polls every few milliseconds. Its lines in the log, one for each job, are
turned off throughout.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

TOOL = Tool(
    name="graphile-worker",
    store=StoreKind.POSTGRES,
    language=Language.NODE,
    driver="graphile-worker",
    about=__doc__,
    unfinished="SELECT count(*) FROM graphile_worker._private_jobs WHERE run_at <= now()",
    pace_per_s=8_000,
    default_pause_s=2.0,
    least_pause_s=0.004,
    creates={"pool": 16, "batch": 1000, "batches_in_flight": 4},
    drain={
        "concurrentJobs": 24,
        "maxPoolSize": 25,
        "localQueue": {"size": 2000},
        "completeJobBatchDelay": 0,
        "failJobBatchDelay": 0,
    },
    lateness={
        "pollInterval": 4,
        "concurrentJobs": 24,
        "maxPoolSize": 25,
        "localQueue": {"size": 100},
        "completeJobBatchDelay": 0,
        "failJobBatchDelay": 0,
    },
    recovery={
        "concurrentJobs": 24,
        "maxPoolSize": 25,
        "localQueue": {"size": 500},
        "completeJobBatchDelay": 0,
        "failJobBatchDelay": 0,
    },
    recovers="by itself after 4 hours, which is fixed and was not waited for; sooner if somebody calls "
    "forceUnlockWorkers with the id of the dead worker",
)
