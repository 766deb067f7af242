"""How much work there is, in the full form and in the quick one."""

from typing import NamedTuple


class Sizes(NamedTuple):
    # Each way of creating is tried for this long.
    create_s: float
    # A backlog, and for how long a peer drains it at most.
    drain_jobs: int
    drain_s: float
    # Jobs on time, and over how long they are spread.
    late_jobs: int
    spread_s: float
    # Jobs of the far future in a full store.
    stored: int
    idle_s: float
    kill_jobs: int


FULL = Sizes(
    create_s=2.0,
    drain_jobs=50_000,
    drain_s=8.0,
    late_jobs=2_000,
    spread_s=20.0,
    stored=1_000_000,
    idle_s=5.0,
    kill_jobs=20_000,
)

QUICK = Sizes(
    create_s=1.0,
    drain_jobs=20_000,
    drain_s=4.0,
    late_jobs=500,
    spread_s=5.0,
    stored=100_000,
    idle_s=2.0,
    kill_jobs=20_000,
)
