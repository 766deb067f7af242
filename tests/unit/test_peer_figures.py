"""From the records of jobs to the figures that are published: what the benchmarks beside our peers compute."""

import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from benchmarks.peers import job_lines
from benchmarks.peers.adapters import TOOLS
from benchmarks.peers.cases import CASES
from benchmarks.peers.conditions import busy_percent
from benchmarks.peers.plan import settings_of, steps, variants
from benchmarks.peers.plot import plot
from benchmarks.peers.ratios import ratio
from benchmarks.peers.report import report
from benchmarks.peers.results import Measurement, NotComparable, Results
from benchmarks.peers.sizes import FULL, QUICK
from benchmarks.peers.targets import targets
from benchmarks.peers.tool import Language

SESSION = {
    "taken_at": "2026-01-02T03:04",
    "machine": {
        "cores": 2,
        "processor": "a processor",
        "memory_gb": 8,
        "system": "a system",
        "file_system": "a file system",
        "sync_ms": 0.5,
        "load_at_start": 0.1,
    },
    "versions": {},
}
OURS, PEER, OTHER = "clepsydra-sqlite", "graphile-worker", "pg-boss"


def results(*measurements: Measurement) -> Results:
    begun = Results.begun(QUICK)
    begun.join(SESSION, [TOOLS[name] for name in (OURS, PEER, OTHER)], {}, QUICK)
    for measured in measurements:
        begun.add(measured)
    return begun


def drained(number: int, tool: str, per_s: float) -> Measurement:
    variant = "default" if tool == OURS else "best"
    return Measurement(number, "drain by one", variant, tool, {"executed_per_s": per_s, "peak_mb": 50.0}, 1.0)


def write_record(folder: Path, process: int, number: int, runs: int, planned_us: float, started_us: float) -> None:
    file = os.open(folder / f"records-{process}", os.O_CREAT | os.O_WRONLY)
    os.pwrite(file, struct.pack("<3d", runs, planned_us, started_us), number * 24)
    os.close(file)


def test_a_job_that_two_processes_ran_has_run_twice_and_counts_from_its_first_start(tmp_path: Path) -> None:
    write_record(tmp_path, 1, 0, 1, 1000.0, 1500.0)
    write_record(tmp_path, 1, 3, 1, 2000.0, 2700.0)
    write_record(tmp_path, 2, 3, 1, 2000.0, 2600.0)

    assert job_lines.runs(tmp_path) == {0: (1, 1000.0, 1500.0), 3: (2, 2000.0, 2600.0)}
    assert (job_lines.executed(tmp_path), job_lines.executed(tmp_path, 2)) == (3, 1)
    assert job_lines.last_start_us(tmp_path) == 2700.0
    assert sorted(job_lines.first_starts_us(tmp_path)) == [1500.0, 2600.0]


def test_a_record_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    write_record(tmp_path, 1, 0, 1, 1000.0, 1500.0)
    with (tmp_path / "records-1").open("ab") as file:
        file.write(b"\x01" * 10)

    assert job_lines.executed(tmp_path) == 1


def test_a_ratio_is_taken_within_each_round_to_the_peer_that_was_best_in_it() -> None:
    found = ratio(
        results(
            *(drained(1, OURS, 100.0), drained(1, PEER, 200.0), drained(1, OTHER, 50.0)),
            *(drained(2, OURS, 300.0), drained(2, PEER, 100.0), drained(2, OTHER, 150.0)),
            *(drained(3, OURS, 100.0), drained(3, PEER, 100.0), drained(3, OTHER, 100.0)),
        ),
        "drain by one",
        OURS,
        "executed_per_s",
    )

    assert found is not None
    assert found.spread == (1.0, 0.5, 2.0, 3)
    assert (found.peer, found.peers_figure) == (PEER, 100.0)


def test_there_is_no_ratio_to_peers_that_were_not_measured() -> None:
    assert ratio(results(drained(1, OURS, 100.0)), "drain by one", OURS, "executed_per_s") is None


def test_a_failed_run_of_ours_misses_a_target() -> None:
    failed = Measurement(1, "kill", "default", OURS, {}, 1.0, "RuntimeError: after a kill, 1 jobs are lost")

    missed = [target.what for target in targets(results(drained(1, OURS, 1.0), failed)) if not target.is_reached]

    assert missed == ["runs of ours with a clean audit and nothing lost"]


def test_the_page_names_what_failed_and_what_a_tool_cannot_do() -> None:
    page = report(results(drained(1, OURS, 1.0), Measurement(1, "kill", "best", PEER, {}, 1.0, "it broke")), "plot.svg")

    assert "round 1, kill, graphile-worker (best): it broke" in page
    assert "![The same figures as bars](plot.svg)" in page


def test_the_plot_is_well_formed_and_shows_every_tool() -> None:
    drawn = plot(results(drained(1, OURS, 100.0), drained(1, PEER, 200.0)))

    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.tag.endswith("text")]
    assert {OURS, PEER, "100", "200"} <= set(texts)


def test_figures_are_the_same_after_a_file(tmp_path: Path) -> None:
    written = results(drained(1, OURS, 100.0), Measurement(1, "kill", "best", PEER, {}, 1.0, "it broke"))
    written.write(tmp_path / "figures.json")

    read = Results.read(tmp_path / "figures.json")

    assert (read.about, read.measurements) == (written.about, written.measurements)


def test_a_run_that_is_resumed_measures_what_is_missing_and_what_failed() -> None:
    half = results(drained(1, OURS, 100.0), Measurement(1, "drain by one", "best", PEER, {}, 1.0, "it broke"))

    assert half.has(1, "drain by one", "default", OURS)
    assert not half.has(1, "drain by one", "best", PEER)
    half.add(drained(1, PEER, 200.0))
    assert [measured.error for measured in half.measurements] == [None, None]


def test_figures_of_other_work_or_other_settings_are_not_put_together() -> None:
    half = results(drained(1, OURS, 100.0))

    with pytest.raises(NotComparable, match="other work"):
        half.join(SESSION, [], {}, FULL)
    with pytest.raises(NotComparable, match="graphile-worker with other settings"):
        half.join(SESSION, [replace(TOOLS[PEER], drain={"concurrentJobs": 1})], {}, QUICK)


def test_the_page_says_which_tools_could_not_be_installed() -> None:
    found = results(drained(1, OURS, 100.0))
    found.join(SESSION, [], {"a-peer": "npm could not install them"}, QUICK)

    assert "### a-peer\n\nNot measured: npm could not install them." in report(found, "plot.svg")


def test_a_peer_whose_lateness_is_its_pause_is_measured_once() -> None:
    planned = [(step.case, step.variant) for step in steps([TOOLS["huey"]], list(CASES), 3) if "lateness" in step.case]

    assert planned == [("lateness", "default"), ("lateness", "best"), ("lateness in a full store", "best")]


def test_ours_are_measured_in_every_round_of_every_case_but_the_kill_and_peers_at_their_best() -> None:
    tools = list(TOOLS.values())
    planned = [(step.round, step.case, step.variant, step.tool.name) for step in steps(tools, list(CASES), 3)]

    for case in CASES:
        rounds = [1] if case == "kill" else [1, 2, 3]
        own = [number for number, name, variant, tool in planned if (name, variant, tool) == (case, "default", OURS)]
        assert own == rounds
        best = [number for number, name, variant, tool in planned if (name, variant, tool) == (case, "best", PEER)]
        assert best == rounds


def test_ours_are_measured_as_they_come_unless_they_are_tuned() -> None:
    for tool in (tool for tool in TOOLS.values() if tool.language is Language.OURS):
        for case in CASES:
            for variant in variants(tool, case):
                assert case == "creates" or variant == "best" or settings_of(tool, case, variant) == {}


class _Times(NamedTuple):
    """As psutil has them, in seconds of all cores together."""

    user: float
    system: float
    idle: float
    iowait: float
    guest: float


@pytest.mark.parametrize(
    ("after", "busy"),
    [
        (_Times(1.0, 1.0, 1.6, 1.0, 0.5), 0.0),
        (_Times(1.0, 1.0, 1.3, 1.3, 0.5), 0.0),
        (_Times(1.1, 1.05, 1.4, 1.05, 0.6), 25.0),
        (_Times(1.3, 1.3, 1.0, 1.0, 0.5), 100.0),
        (_Times(1.0, 1.0, 1.0, 1.0, 0.5), 0.0),
    ],
    ids=["idle", "waiting for the disk", "a quarter, in part by a guest", "all of it", "no time has passed"],
)
def test_what_others_use_is_a_share_of_the_time_that_has_passed(after: _Times, busy: float) -> None:
    assert busy_percent(_Times(1.0, 1.0, 1.0, 1.0, 0.5), after) == pytest.approx(busy)
