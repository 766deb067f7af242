"""Durable creates a second: one by one, 64 in flight, and in bulk."""

import subprocess
import sys

from benchmarks.creates import empty_per_s
from benchmarks.installation import free_port, wait_for_server
from benchmarks.peers.places import Places
from benchmarks.peers.setup import Setup
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Settings, Tool

_WAYS = {"single": "single_per_s", "in flight": "in_flight_per_s", "bulk": "bulk_per_s"}
_MORE_THAN_ENOUGH = 10_000_000
_FUTURE_MS = 3_600_000


def creates(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> dict[str, float]:
    """Jobs due in an hour, each way for as long as it is given; beside ours, what a call that does nothing reaches."""
    with places.empty(tool) as setup:
        setup.ask("install", tool.default)
        figures = {
            figure: _per_s(setup, settings, sizes, way, number)
            for number, (way, figure) in enumerate(_WAYS.items())
            if way not in tool.cannot
        }
        setup.check(settings)
    if tool.is_ours:
        figures["empty_call_per_s"] = _empty_calls_per_s(round(sizes.create_s * 1_000))
    return figures


def _per_s(setup: Setup, settings: Settings, sizes: Sizes, way: str, number: int) -> float:
    made = setup.ask(
        "create",
        settings,
        mode=way,
        count=_MORE_THAN_ENOUGH,
        seconds=sizes.create_s,
        lead_ms=_FUTURE_MS,
        step_us=1_000,
        first_number=number * _MORE_THAN_ENOUGH,
    )
    return float(made["created"] / made["seconds"])


def _empty_calls_per_s(count: int) -> float:
    """What Python's gRPC does at most, with the same number of calls in flight."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.empty_server", str(port)])
    try:
        wait_for_server(f"127.0.0.1:{port}")
        return empty_per_s(f"127.0.0.1:{port}", count, 64)
    finally:
        server.kill()
        server.wait()
