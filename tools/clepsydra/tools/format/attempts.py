"""The attempts that an action remembers, for people: a line for each, the newest last."""

from collections.abc import Iterable

from rich.table import Table

from clepsydra.core.times import duration_us, us_of
from clepsydra.tools.format.durations import exact_duration
from clepsydra.tools.format.tables import table
from clepsydra.tools.format.text import printable
from clepsydra.tools.format.times import rfc3339, to_the_second
from clepsydra.v1.action_pb2 import Attempt

COLUMNS = ("OCCURRENCE", "ATTEMPT", "START", "LATE", "TOOK", "OUTCOME", "WORKER", "ERROR")


def attempts_table(attempts: Iterable[Attempt]) -> Table:
    return table(COLUMNS, map(attempt_cells, attempts), right=["ATTEMPT", "LATE", "TOOK"])


def attempt_cells(attempt: Attempt) -> list[str]:
    return [
        to_the_second(us_of(attempt.occurrence_time)),
        f"{attempt.number}",
        rfc3339(us_of(attempt.start_time)),
        exact_duration(duration_us(attempt.lateness)),
        exact_duration(max(us_of(attempt.end_time) - us_of(attempt.start_time), 0)),
        format_outcome(attempt),
        printable(attempt.worker) or "-",
        printable(attempt.error) or "-",
    ]


def format_attempt(attempt: Attempt) -> str:
    """An attempt that has ended, in one line."""
    took_us = max(us_of(attempt.end_time) - us_of(attempt.start_time), 0)
    worker = f" on {printable(attempt.worker)}" if attempt.worker else ""
    line = (
        f"{format_outcome(attempt)} at {rfc3339(us_of(attempt.end_time))}: attempt {attempt.number}{worker}, "
        f"{exact_duration(duration_us(attempt.lateness))} late, took {exact_duration(took_us)}"
    )
    return f"{line}: {printable(attempt.error)}" if attempt.error else line


def format_outcome(attempt: Attempt) -> str:
    """
    >>> format_outcome(Attempt(outcome=Attempt.TIMEOUT))
    'timeout'
    """
    return Attempt.Outcome.Name(attempt.outcome).lower() if attempt.outcome in Attempt.Outcome.values() else "?"
