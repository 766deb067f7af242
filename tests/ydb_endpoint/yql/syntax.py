"""The syntax tree: statements and expressions, before tables and types are known."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.ydb_endpoint.yql.types import Primitive, Type


@dataclass(frozen=True)
class Literal:
    type: Primitive
    value: Any


@dataclass(frozen=True)
class Parameter:
    name: str


@dataclass(frozen=True)
class Column:
    qualifier: str | None
    name: str


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True)
class TypeName:
    """A type as an argument."""

    type: Type


@dataclass(frozen=True)
class Star:
    """The argument of COUNT(*)."""


@dataclass(frozen=True)
class Cast:
    expression: "Expression"
    type: Type


@dataclass(frozen=True)
class Binary:
    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Not:
    expression: "Expression"


@dataclass(frozen=True)
class IsNull:
    expression: "Expression"
    negated: bool


@dataclass(frozen=True)
class Tuple:
    items: tuple["Expression", ...]


@dataclass(frozen=True)
class Case:
    whens: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression"


Expression: TypeAlias = (
    Literal | Parameter | Column | Call | TypeName | Star | Cast | Binary | Not | IsNull | Tuple | Case
)


@dataclass(frozen=True)
class AsTable:
    """AS_TABLE($rows)."""

    parameter: str
    alias: str | None


@dataclass(frozen=True)
class TableName:
    name: str
    alias: str | None


@dataclass(frozen=True)
class NamedRows:
    """A named expression as a source."""

    name: str
    alias: str | None


Source: TypeAlias = AsTable | TableName | NamedRows


@dataclass(frozen=True)
class Join:
    is_left: bool
    source: Source
    on: Expression


@dataclass(frozen=True)
class Select:
    items: tuple[tuple[Expression, str | None], ...]
    source: Source | None = None
    joins: tuple[Join, ...] = ()
    where: Expression | None = None
    group_by: tuple[Column, ...] = ()
    order_by: tuple[Column, ...] = ()
    limit: Expression | None = None


@dataclass(frozen=True)
class Pragma:
    name: str
    value: str


@dataclass(frozen=True)
class Declare:
    name: str
    type: Type


@dataclass(frozen=True)
class Named:
    name: str
    select: Select


@dataclass(frozen=True)
class Write:
    """UPSERT, REPLACE, INSERT or DELETE ON, with the rows of a SELECT."""

    verb: str
    table: str
    select: Select


@dataclass(frozen=True)
class CreateTable:
    name: str
    if_not_exists: bool
    # The type of each column, and whether it is NOT NULL.
    columns: dict[str, tuple[Primitive, bool]]
    key: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DropTable:
    name: str


Statement: TypeAlias = Pragma | Declare | Named | Select | Write | CreateTable | DropTable
