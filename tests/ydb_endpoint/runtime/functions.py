"""The functions of YQL that the project uses, with the types of their arguments and results."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.ydb_endpoint.errors import Refused, Status, wrong_text
from tests.ydb_endpoint.yql.types import BOOL, INT32, STRING, TIMESTAMP, UINT64, Maybe, Type, bare, maybe


class Function(NamedTuple):
    # The type of the result for the types of the arguments; raises Refused if they do not fit.
    result: Callable[[Sequence[Type]], Type]
    apply: Callable[..., Any]


def _wrong_arguments(name: str, types: Sequence[Type]) -> Refused:
    return wrong_text(f"{name} cannot be applied to ({', '.join(map(str, types))})")


def _coalesce_type(types: Sequence[Type]) -> Type:
    if len(types) < 2 or len({bare(kind) for kind in types}) != 1:
        raise _wrong_arguments("COALESCE", types)
    return types[-1]


def _if_type(types: Sequence[Type]) -> Type:
    if len(types) not in (2, 3) or bare(types[0]) != BOOL:
        raise _wrong_arguments("IF", types)
    if len(types) == 2:
        return maybe(types[1])
    if types[1] != types[2]:
        raise _wrong_arguments("IF", types)
    return types[1]


def _ensure_type(types: Sequence[Type]) -> Type:
    if len(types) != 3 or types[1] != BOOL or types[2] != STRING:
        raise _wrong_arguments("Ensure", types)
    return types[0]


def _unwrap_type(types: Sequence[Type]) -> Type:
    if len(types) != 1 or not isinstance(types[0], Maybe):
        raise _wrong_arguments("Unwrap", types)
    return types[0].item


def _max_of_type(types: Sequence[Type]) -> Type:
    if len(set(types)) != 1 or isinstance(types[0], Maybe):
        raise _wrong_arguments("MAX_OF", types)
    return types[0]


def _exactly(name: str, *wanted: Type, gives: Type) -> Callable[[Sequence[Type]], Type]:
    def check(types: Sequence[Type]) -> Type:
        if tuple(types) != wanted:
            raise _wrong_arguments(name, types)
        return gives

    return check


def _ensure(value: Any, condition: bool, message: bytes) -> Any:
    if not condition:
        raise Refused(Status.PRECONDITION_FAILED, f"Condition violated: {message.decode()}")
    return value


def _unwrap(value: Any) -> Any:
    if value is None:
        raise Refused(Status.PRECONDITION_FAILED, "Failed to unwrap empty optional")
    return value


def _from_bytes(value: bytes, _type: None) -> int | None:
    return int.from_bytes(value, "little") if len(value) == 8 else None


FUNCTIONS: dict[str, Function] = {
    "COALESCE": Function(_coalesce_type, lambda *values: next((v for v in values if v is not None), None)),
    "IF": Function(_if_type, lambda condition, value, other=None: value if condition else other),
    "ENSURE": Function(_ensure_type, _ensure),
    "UNWRAP": Function(_unwrap_type, _unwrap),
    "MAX_OF": Function(_max_of_type, max),
    "DIGEST::SHA256": Function(
        _exactly("Digest::Sha256", STRING, gives=STRING), lambda value: hashlib.sha256(value).digest()
    ),
    "SUBSTRING": Function(
        _exactly("Substring", STRING, INT32, INT32, gives=STRING),
        lambda value, start, length: value[start : start + length],
    ),
    "FROMBYTES": Function(_exactly("FromBytes", STRING, UINT64, gives=Maybe(UINT64)), _from_bytes),
}

# The clock is no pure function: expressions.py reads it where the text calls this.
CLOCK = "CURRENTUTCTIMESTAMP"
CLOCK_TYPE = TIMESTAMP

# Nor is the version of the node that runs the text.
VERSION = "VERSION"

AGGREGATES = ("COUNT", "COUNT_IF", "MIN")
