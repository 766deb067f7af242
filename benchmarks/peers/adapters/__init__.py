"""The tools, one file each: settings, with where they come from, and what a tool cannot do."""

from benchmarks.peers.adapters import (
    apscheduler,
    clepsydra,
    dbos,
    graphile_worker,
    huey,
    pg_boss,
    pgqueuer,
    procrastinate,
)
from benchmarks.peers.tool import Tool

# Ours stand among the others, so that whatever disturbs the machine meets both.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        clepsydra.ON_SQLITE,
        graphile_worker.TOOL,
        huey.TOOL,
        pg_boss.TOOL,
        clepsydra.ON_POSTGRES,
        pgqueuer.TOOL,
        apscheduler.ON_SQLITE,
        procrastinate.TOOL,
        dbos.TOOL,
        apscheduler.ON_POSTGRES,
    )
}

# Measured only when asked for by name: it says little that the same tool on SQLite does not.
ON_REQUEST = (apscheduler.ON_POSTGRES.name,)
