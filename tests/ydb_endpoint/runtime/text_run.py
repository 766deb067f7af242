"""Runs a compiled text within a transaction, one statement after the other.

Other requests run between two statements, so transactions overlap as they do on a real server. A test chooses whether a
named expression is evaluated once or again at each use: YDB promises neither.
"""

import asyncio
import random
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.limits import ServerLimits, size_of
from tests.ydb_endpoint.runtime.compilation import CompiledText, Effect
from tests.ydb_endpoint.storage import Transaction
from tests.ydb_endpoint.yql.types import Type


class Evaluation(Enum):
    ONCE = "once"
    EACH_USE = "each use"
    # Chosen at random at each use.
    MIXED = "mixed"


class ResultSet(NamedTuple):
    columns: dict[str, Type]
    rows: list[dict[str, Any]]


class Surroundings(NamedTuple):
    """What a text can learn about its server."""

    clock: Callable[[], int]
    version: str
    limits: ServerLimits
    evaluation: Evaluation
    randomness: random.Random


class TextRun:
    def __init__(
        self, text: CompiledText, parameters: dict[str, Any], transaction: Transaction, surroundings: Surroundings
    ) -> None:
        self._text = text
        self.parameters = parameters
        self.transaction = transaction
        self._clock, self._limits = surroundings.clock, surroundings.limits
        self._evaluation, self._randomness = surroundings.evaluation, surroundings.randomness
        self.version = surroundings.version.encode()
        self._evaluated: dict[str, list[dict[str, Any]]] = {}
        self._now_us: int | None = None

    def now_us(self) -> int:
        """The clock advances within a text, unless everything is evaluated once."""
        if self._now_us is None or self._evaluation is not Evaluation.ONCE:
            self._now_us = self._clock()
        return self._now_us

    def named_rows(self, name: str) -> list[dict[str, Any]]:
        again = self._evaluation is Evaluation.EACH_USE or (
            self._evaluation is Evaluation.MIXED and self._randomness.random() < 0.5
        )
        if again or name not in self._evaluated:
            self._evaluated[name] = self._text.named[name].rows(self)
            if self._text.effects:
                self._check_size(self._evaluated[name])
        return self._evaluated[name]

    def _check_size(self, rows: list[dict[str, Any]]) -> None:
        size, most = sum(size_of(value) for row in rows for value in row.values()), self._limits.intermediate_bytes
        if size > most:
            message = f"Intermediate data materialization exceeded size limit ({size} > {most})."
            raise Refused(Status.PRECONDITION_FAILED, message, ("Execution",))

    async def run_statements(self) -> list[ResultSet]:
        results = []
        for step in self._text.steps:
            await asyncio.sleep(0)
            if isinstance(step, Effect):
                self._apply(step)
            else:
                results.append(ResultSet(step.columns, step.rows(self)))
        await asyncio.sleep(0)
        return results

    def _apply(self, effect: Effect) -> None:
        table, transaction = effect.table, self.transaction
        # All rows are selected first: a statement does not see its own writes.
        for given in effect.selection.rows(self):
            key = table.key_of(given)
            match effect.verb:
                case "DELETE":
                    transaction.replace(table, key, None)
                case "UPSERT":
                    transaction.upsert(table, key, given)
                case "INSERT" if transaction.get(table, key) is not None:
                    raise Refused(Status.PRECONDITION_FAILED, "Conflict with existing key.")
                case _:
                    transaction.replace(table, key, dict.fromkeys(table.columns) | given)
