"""Compiles a text against the schema: its parameters, reads and writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.ydb_endpoint.errors import Refused, Status, wrong_text
from tests.ydb_endpoint.runtime.selection import Read, Selection, selection_of
from tests.ydb_endpoint.storage import Database, Table
from tests.ydb_endpoint.yql.parser import parse
from tests.ydb_endpoint.yql.syntax import CreateTable, Declare, DropTable, Named, Pragma, Select, Statement, Write
from tests.ydb_endpoint.yql.types import ListOf, Maybe, StructOf, Type, bare, is_rows, type_from_message
from tests.ydb_endpoint.yql.values import decoded, decoded_rows

# At this level of the cost-based optimiser, a join with a left side of more than 1,000 rows is no lookup. The endpoint
# has no estimates, and assumes that the left side is larger.
_ALL_BY_COST = 4


@dataclass
class Effect:
    """A statement that writes."""

    verb: str
    table: Table
    selection: Selection


@dataclass
class CompiledText:
    parameters: dict[str, Type] = field(default_factory=dict)
    # How much the planner goes by estimated costs, unless the text says otherwise.
    cost_based_level: int = 4
    named: dict[str, Selection] = field(default_factory=dict)
    # Results and writes, in the order of the text.
    steps: list[Selection | Effect] = field(default_factory=list)
    schema: list[CreateTable | DropTable] = field(default_factory=list)

    @property
    def effects(self) -> list[Effect]:
        return [step for step in self.steps if isinstance(step, Effect)]

    @property
    def reads(self) -> list[Read]:
        selections = [step.selection if isinstance(step, Effect) else step for step in self.steps]
        return [read for selection in selections for read in selection.reads]

    def bound(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the parameters. They must be exactly those that the text declares."""
        for name in sent:
            if name not in self.parameters:
                raise Refused(Status.BAD_REQUEST, f"the text declares no parameter {name}")
        return {name: _bound(name, kind, sent) for name, kind in self.parameters.items()}


def _bound(name: str, kind: Type, sent: Mapping[str, Any]) -> Any:
    if name not in sent:
        raise Refused(Status.BAD_REQUEST, f"Missing value for parameter: {name}")
    typed = sent[name]
    actual = type_from_message(typed.type)
    if actual != kind:
        raise Refused(Status.BAD_REQUEST, f"Parameter {name} type mismatch, expected: {kind}, actual: {actual}")
    if is_rows(kind):
        assert isinstance(kind, ListOf)
        assert isinstance(kind.item, StructOf)
        return decoded_rows(typed.type, dict(kind.item.members), typed.value, name)
    return decoded(kind, typed.value, name)


def compiled_text(text: str, database: Database) -> CompiledText:
    return _Compiler(database).compiled(parse(text))


class _Compiler:
    """Compiles statement by statement, with the parameters and names of the statements before."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._prefix = database.root
        self._text = CompiledText()

    @property
    def parameters(self) -> Mapping[str, Type]:
        return self._text.parameters

    @property
    def named(self) -> Mapping[str, Selection]:
        return self._text.named

    @property
    def joins_are_lookups(self) -> bool:
        return self._text.cost_based_level != _ALL_BY_COST

    def table(self, name: str) -> Table:
        return self._database.table(self._path(name))

    def compiled(self, statements: list[Statement]) -> CompiledText:
        for statement in statements:
            self._add(statement)
        if self._text.schema and self._text.steps:
            raise wrong_text("Statements with mixed data and scheme operations are not supported.")
        return self._text

    def _add(self, statement: Statement) -> None:
        match statement:
            case Pragma(name="TablePathPrefix", value=value):
                self._prefix = value
            case Pragma(name="ydb.CostBasedOptimizationLevel", value="0" | "1" | "2" | "3" | "4" as value):
                self._text.cost_based_level = int(value)
            case Pragma(name=name):
                raise wrong_text(f"the endpoint does not know PRAGMA {name}")
            case Declare(name=name, type=kind):
                self._text.parameters[name] = kind
            case Named(name=name, select=select):
                self._text.named[name] = selection_of(select, self)
            case Select():
                self._text.steps.append(selection_of(statement, self))
            case Write():
                self._text.steps.append(self._effect(statement))
            case CreateTable() | DropTable():
                self._text.schema.append(replace(statement, name=self._path(statement.name)))

    def _effect(self, write: Write) -> Effect:
        table, selection = self.table(write.table), selection_of(write.select, self)
        for name, kind in selection.columns.items():
            if name not in table.columns:
                raise wrong_text(f"No such column: {name}")
            column = table.columns[name]
            if bare(kind) != bare(column) or (isinstance(kind, Maybe) and not isinstance(column, Maybe)):
                raise wrong_text(f"Failed to convert '{name}': {kind} to {column}")
        wanted = set(table.key) | {name for name in table.columns if not table.is_nullable(name)}
        missing = sorted(wanted - set(selection.columns))
        if missing:
            raise wrong_text(f"Missing key column in input: {missing[0]} for table: {table.path}")
        if write.verb == "DELETE" and set(selection.columns) != set(table.key):
            raise wrong_text("DELETE ON takes the columns of the key, and no others")
        return Effect(write.verb, table, selection)

    def _path(self, name: str) -> str:
        return name if name.startswith("/") else f"{self._prefix.rstrip('/')}/{name}"


def plan_of(text: CompiledText) -> dict[str, Any]:
    """The result of EXPLAIN, in the format of YDB's plans: how each table is read and written."""
    tables: dict[str, dict[str, Any]] = {}
    for read in text.reads:
        entry = tables.setdefault(read.table, {"name": read.table})
        entry.setdefault("reads", []).append({"type": read.way.value} | ({"limit": "n"} if read.is_limited else {}))
    for effect in text.effects:
        entry = tables.setdefault(effect.table.path, {"name": effect.table.path})
        kind = "MultiErase" if effect.verb == "DELETE" else f"Multi{effect.verb.capitalize()}"
        entry.setdefault("writes", []).append({"type": kind})
    return {"meta": {"version": "0.2", "type": "query"}, "tables": list(tables.values())}


__all__ = ["CompiledText", "Effect", "compiled_text", "plan_of"]
