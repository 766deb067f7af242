"""DBOS on PostgreSQL, Python: a job is a workflow without steps, on a queue.

By default a worker claims everything that is queued, a thread for each; so the queue is given a limit for a worker,
and is polled more often than once a second. Delayed workflows are put on the queue once a second, which is fixed. It
has no call that creates many, but takes part in a transaction of the application's.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

_CONFIG = {"sys_db_pool_size": 20, "max_executor_threads": 32}

TOOL = Tool(
    name="dbos",
    store=StoreKind.POSTGRES,
    language=Language.PYTHON,
    driver="dbos",
    about=__doc__,
    unfinished="SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') "
    "OR status = 'DELAYED' AND delay_until_epoch_ms <= extract(epoch FROM now()) * 1000",
    pace_per_s=200,
    default_pause_s=1.0,
    least_pause_s=1.0,
    creates={"pool": 20, "batch": 500, "batches_in_flight": 4},
    drain={"config": _CONFIG, "queue": {"polling_interval_sec": 0.05, "worker_concurrency": 200}},
    lateness={"config": _CONFIG, "queue": {"polling_interval_sec": 0.01, "worker_concurrency": 200}},
    recovery={"config": _CONFIG, "queue": {"polling_interval_sec": 0.05, "worker_concurrency": 200}},
    recovers="when the process is started again under the same name; otherwise by its Conductor, a service of its own",
    recovery_wait_s=30.0,
)
