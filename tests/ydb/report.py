"""A pytest plugin that ends a run on a server with a report: one file that can be attached to an issue.

`make test-ydb` loads it. It takes what tests record with `record_property`: the server's version, the plan of every
text, and the round trips and times of every call.
"""

import asyncio
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.ydb.installations import REAL_SERVER, as_store_url, remove_all
from tests.ydb_endpoint.__main__ import NAME as ENDPOINT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ydb-report", type=Path, help="write a report on the YDB server to this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--ydb-report")
    # With more than one process, the one that starts the others writes the report.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report(path), "ydb-report")


def pytest_sessionfinish() -> None:
    if REAL_SERVER:
        asyncio.run(remove_all())


class Report:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, list[str]] = {}
        self._failures: list[tuple[str, str]] = []
        self._recorded: dict[str, list[Any]] = {}
        self._slowest: list[tuple[float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self._outcomes.setdefault(report.outcome, []).append(report.nodeid)
            self._slowest.append((report.duration, report.nodeid))
        if report.failed:
            self._failures.append((report.nodeid, report.longreprtext))
        if report.when == "call":
            for name, value in report.user_properties:
                self._recorded.setdefault(name, []).append(value)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self._path.write_text("\n".join(self._lines()) + "\n")
        terminalreporter.write_line(f"the report is in {self._path}")

    def _lines(self) -> Iterator[str]:
        [server] = self._recorded.get("server_version", ["it does not say"])[:1]
        yield "# Clepsydra on a YDB server"
        yield ""
        if server == ENDPOINT:
            yield "**This is the endpoint for tests, not YDB: its plans and times mean nothing.**"
            yield ""
        yield f"- server: {server}, at {_without_user(as_store_url(REAL_SERVER or 'an endpoint'))}"
        yield f"- client: Clepsydra {version('clepsydra')}, ydb {version('ydb')}, grpcio {version('grpcio')}"
        yield f"- Python {platform.python_version()} on {platform.platform()}"
        counts = ", ".join(f"{len(names)} {outcome}" for outcome, names in sorted(self._outcomes.items()))
        yield f"- tests: {counts or 'none'}, {sum(took_s for took_s, _ in self._slowest):.0f} s in all"
        yield from self._calls()
        yield from self._plans()
        yield from self._tests()

    def _calls(self) -> Iterator[str]:
        yield from ("", "## Calls", "")
        yield "The requests of each call, and its time in ms: the first, then the median and the longest of the others."
        yield from ("", "| call | requests | first | median | longest |", "| --- | --- | --- | --- | --- |")
        for call in sorted(self._recorded.get("call", []), key=lambda each: str(each["name"])):
            times = " | ".join(f"{call[name]:.1f}" for name in ("first_ms", "median_ms", "longest_ms"))
            yield f"| {call['name']} | {len(call['requests'])}: {', '.join(call['requests'])} | {times} |"

    def _plans(self) -> Iterator[str]:
        yield from ("", "## Plans", "", "How the server reads and writes the tables of each text.")
        yield from ("", "| text | reads | writes |", "| --- | --- | --- |")
        for plan in self._recorded.get("plan", []):
            reads, writes = (", ".join(dict.fromkeys(plan[name])) for name in ("reads", "writes"))
            yield f"| {plan['name']} | {reads} | {writes} |"

    def _tests(self) -> Iterator[str]:
        yield from ("", "## Tests")
        for name, text in self._failures:
            yield from ("", f"### {name}", "", "```", text, "```")
        yield from ("", "The slowest:", "")
        for took_s, name in sorted(self._slowest, reverse=True)[:10]:
            yield f"- {took_s:.1f} s {name}"
        yield from ("", "<details><summary>All</summary>", "")
        for outcome, names in sorted(self._outcomes.items()):
            for name in names:
                yield f"- {outcome}: {name}"
        yield from ("", "</details>")


def _without_user(url: str) -> str:
    scheme, _, rest = url.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if scheme else url
