"""Decodes parameters and encodes results. A value that does not fit its type is refused, not converted."""

from typing import Any

from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.messages import value_pb2
from tests.ydb_endpoint.yql.types import ListOf, Maybe, Primitive, StructOf, Type

_FIELDS = {
    "Bool": "bool_value",
    "Int32": "int32_value",
    "Uint32": "uint32_value",
    "Int64": "int64_value",
    "Uint64": "uint64_value",
    "String": "bytes_value",
    "Utf8": "text_value",
    "Timestamp": "uint64_value",
    "Interval": "int64_value",
}
# 2106-01-01, in microseconds.
_TIMESTAMP_END = 4_291_747_200_000_000


def decoded(kind: Type, message: Any, name: str) -> Any:
    """A parameter's value."""
    if isinstance(kind, Maybe):
        return None if message.WhichOneof("value") == "null_flag_value" else decoded(kind.item, message, name)
    if isinstance(kind, ListOf):
        return [decoded(kind.item, item, name) for item in message.items]
    if isinstance(kind, StructOf):
        raise Refused(Status.UNSUPPORTED, f"parameter {name}: a struct outside of a list")
    return _decoded_primitive(kind, message, name)


def decoded_rows(message_type: Any, members: dict[str, Type], message: Any, name: str) -> list[dict[str, Any]]:
    """A list of structs. The members are in the order of the sender's type."""
    order = [member.name for member in message_type.list_type.item.struct_type.members]
    rows = []
    for item in message.items:
        if len(item.items) != len(order):
            raise Refused(Status.BAD_REQUEST, f"parameter {name}: a struct has {len(item.items)} members")
        pairs = zip(order, item.items, strict=True)
        rows.append({member: decoded(members[member], value, name) for member, value in pairs})
    return rows


def _decoded_primitive(kind: Primitive, message: Any, name: str) -> Any:
    which = message.WhichOneof("value")
    if which != _FIELDS[kind.name]:
        raise Refused(Status.BAD_REQUEST, f"parameter {name}: a {kind} cannot be sent as {which}")
    value = getattr(message, which)
    if kind.name == "Timestamp" and value >= _TIMESTAMP_END:
        raise Refused(Status.BAD_REQUEST, f"parameter {name}: {value} is no Timestamp")
    return value


def encoded(kind: Type, value: Any) -> Any:
    """A value of a result."""
    if isinstance(kind, Maybe):
        return value_pb2.Value(null_flag_value=0) if value is None else encoded(kind.item, value)
    assert isinstance(kind, Primitive), f"a result has no column of type {kind}"
    assert value is not None, f"a value of type {kind} is missing"
    return value_pb2.Value(**{_FIELDS[kind.name]: value})
