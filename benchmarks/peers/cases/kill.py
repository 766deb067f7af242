"""Kill a worker in the midst of a backlog, and start it again at once, as its supervisor would.

Two workers share the work, where a tool allows that, and a job takes a twentieth of a second. What was begun when the
worker died is either taken up again, soon or late, or lost; what had been executed and not written down yet is executed
again.
"""

import time

from benchmarks.installation import wait_until
from benchmarks.peers import job_lines
from benchmarks.peers.cases.waiting import FIRST_S, fill_with_due, wait_up_to
from benchmarks.peers.places import Places
from benchmarks.peers.setup import Setup, Worker, now_us
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Settings, Tool

_JOB_S = 0.05
# The whole backlog takes less than this.
_BACKLOG_S = 20.0


def kill(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> dict[str, float]:
    count = min(sizes.kill_jobs, tool.kill_jobs)
    with places.empty(tool) as setup:
        setup.rest_s = _JOB_S
        setup.ask("install", settings)
        fill_with_due(setup, count)
        killed_us = _kill_in_the_midst(setup, settings, count)
        wait_up_to(lambda: setup.unfinished() == 0, _BACKLOG_S + tool.recovery_wait_s, every_s=0.5)
        # What is removed from the store before it is executed may still be executed.
        wait_up_to(lambda: len(job_lines.runs(setup.records)) >= count, 3.0, every_s=0.5)
        figures = _outcome(setup, count, killed_us)
        setup.check(settings)
    if tool.is_ours and "done_s" not in figures:
        raise RuntimeError(f"after a kill, {figures['lost']} jobs are lost and {figures['held']} not done")
    return figures


def _kill_in_the_midst(setup: Setup, settings: Settings, count: int) -> int:
    """Returns when that was."""
    workers = [setup.work(settings) for _ in range(1 if "drain by two" in setup.tool.cannot else 2)]

    def at_it() -> list[Worker]:
        """Those that have done some of it: early enough that much is left, however fast the tool is."""
        return [worker for worker in workers if worker.executed(setup.records) >= count // 40]

    # Whichever comes first: the other one may have found nothing left to take.
    wait_until(lambda: bool(at_it()), FIRST_S)
    victim = at_it()[0]
    # Jobs that were begun together end together: half a job later it is in the midst of the next ones.
    time.sleep(_JOB_S / 2)
    killed_us = now_us()
    victim.kill()
    setup.work(settings, victim.name)
    return killed_us


def _outcome(setup: Setup, count: int, killed_us: int) -> dict[str, float]:
    runs, unfinished = job_lines.runs(setup.records), setup.unfinished()
    figures: dict[str, float] = {
        "jobs": count,
        "lost": max(0, count - len(runs) - unfinished),
        "held": unfinished,
        "twice": sum(run.times > 1 for run in runs.values()),
    }
    if len(runs) == count:
        figures["done_s"] = (job_lines.last_start_us(setup.records) - killed_us) / 1e6
    return figures
