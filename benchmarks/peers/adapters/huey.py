"""huey on SQLite, Python.

WAL mode, its default, and `fsync`: a sync at every commit. A worker deletes a job from the queue when it takes it,
before it has run. Jobs of the future wait in a table of their own, which its scheduler looks at once a second: a
shorter interval is refused. So the shortest pause of the workers is all that can be set for jobs on time.
"""

from benchmarks.peers.tool import Language, StoreKind, Tool

TOOL = Tool(
    name="huey",
    store=StoreKind.SQLITE,
    language=Language.PYTHON,
    driver="huey",
    about=__doc__,
    unfinished="SELECT (SELECT count(*) FROM task) "
    "+ (SELECT count(*) FROM schedule WHERE timestamp <= unixepoch('subsec'))",
    pace_per_s=500,
    default_pause_s=1.0,
    least_pause_s=1.0,
    drain={"workers": 2},
    lateness={"workers": 2, "initial_delay": 0.005, "max_delay": 0.005},
    recovery={"workers": 16},
    recovers="not at all: a job is removed before it runs, and is lost if the process dies meanwhile",
    cannot={"bulk": "it has no call that creates many jobs"},
)
