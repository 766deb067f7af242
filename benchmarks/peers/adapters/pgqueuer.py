"""pgqueuer on PostgreSQL, Python.

Its tables are logged ones, the durable form that it installs by default. A worker takes 10 jobs at a time by default;
outcomes are written in batches of the same size. It knows when the next job is due and rests until then, but for 0.1 s
at least: an attribute of its queue manager, which is set to less for jobs on time. It takes delays, not times.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

TOOL = Tool(
    name="pgqueuer",
    store=StoreKind.POSTGRES,
    language=Language.PYTHON,
    driver="pgqueuer",
    about=__doc__,
    unfinished="SELECT count(*) FROM pgqueuer WHERE execute_after <= now()",
    pace_per_s=4_000,
    default_pause_s=0.1,
    least_pause_s=0.002,
    creates={"pool": 16, "uvloop": True, "batch": 1000, "batches_in_flight": 4},
    drain={"uvloop": True, "batch_size": 500},
    lateness={"uvloop": True, "batch_size": 100, "least_poll_s": 0.002},
    recovery={"uvloop": True, "batch_size": 500, "heartbeat_timeout": 30},
    recovers="by itself, when a job's heartbeat is 30 s old, its default",
    recovery_wait_s=75.0,
    kill_jobs=20_000,
)
