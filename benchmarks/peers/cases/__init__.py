"""The work, the same for every tool: one function for each case, from a tool and its settings to figures."""

from collections.abc import Callable

from benchmarks.peers.cases.creates import creates
from benchmarks.peers.cases.drain import drain_by_one, drain_by_two
from benchmarks.peers.cases.kill import kill
from benchmarks.peers.cases.lateness import lateness, lateness_in_full_store
from benchmarks.peers.places import Places
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Settings, Tool

Case = Callable[[Places, Tool, Settings, Sizes], dict[str, float]]

CASES: dict[str, Case] = {
    "creates": creates,
    "drain by one": drain_by_one,
    "drain by two": drain_by_two,
    "lateness": lateness,
    "lateness in a full store": lateness_in_full_store,
    "kill": kill,
}
