"""The types of YQL that the project uses. Nothing is converted: types are equal or different."""

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.messages import value_pb2

_PRIMITIVES: dict[str, int] = {
    name: value_pb2.Type.PrimitiveTypeId.Value(name.upper())
    for name in ("Bool", "Int32", "Uint32", "Int64", "Uint64", "String", "Utf8", "Timestamp", "Interval")
}
_NAMES = {number: name for name, number in _PRIMITIVES.items()}


@dataclass(frozen=True)
class Primitive:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Maybe:
    """Optional<T>."""

    item: "Type"

    def __str__(self) -> str:
        return f"Optional<{self.item}>"


@dataclass(frozen=True)
class ListOf:
    item: "Type"

    def __str__(self) -> str:
        return f"List<{self.item}>"


@dataclass(frozen=True)
class StructOf:
    """Members are identified by name; their order means nothing."""

    members: tuple[tuple[str, "Type"], ...]

    def __str__(self) -> str:
        return f"Struct<{', '.join(f'{name}: {member}' for name, member in self.members)}>"


Type: TypeAlias = Primitive | Maybe | ListOf | StructOf

BOOL, UTF8, STRING = Primitive("Bool"), Primitive("Utf8"), Primitive("String")
INT32, UINT64 = Primitive("Int32"), Primitive("Uint64")
TIMESTAMP, INTERVAL = Primitive("Timestamp"), Primitive("Interval")


def primitive(name: str) -> Primitive:
    for known in _PRIMITIVES:
        if known.lower() == name.lower():
            return Primitive(known)
    raise Refused(Status.GENERIC_ERROR, f"unknown type {name}")


def struct_of(members: dict[str, Type]) -> StructOf:
    return StructOf(tuple(sorted(members.items())))


def bare(kind: Type) -> Type:
    """The type without its Optional."""
    return kind.item if isinstance(kind, Maybe) else kind


def maybe(kind: Type) -> Maybe:
    return kind if isinstance(kind, Maybe) else Maybe(kind)


def is_rows(kind: Type) -> TypeGuard[ListOf]:
    return isinstance(kind, ListOf) and isinstance(kind.item, StructOf)


def type_from_message(message: Any) -> Type:
    which = message.WhichOneof("type")
    if which == "type_id" and message.type_id in _NAMES:
        return Primitive(_NAMES[message.type_id])
    if which == "optional_type":
        return Maybe(type_from_message(message.optional_type.item))
    if which == "list_type":
        return ListOf(type_from_message(message.list_type.item))
    if which == "struct_type":
        return struct_of({member.name: type_from_message(member.type) for member in message.struct_type.members})
    raise Refused(Status.BAD_REQUEST, f"a parameter has a type that the endpoint does not know: {message}".strip())


def type_to_message(kind: Type) -> Any:
    message = value_pb2.Type()
    if isinstance(kind, Maybe):
        message.optional_type.item.CopyFrom(type_to_message(kind.item))
    elif isinstance(kind, Primitive):
        message.type_id = _PRIMITIVES[kind.name]
    else:
        raise Refused(Status.UNSUPPORTED, f"a result cannot have a column of type {kind}")
    return message
