"""What an action can do: one module for each field of the oneof `target` in a spec, under the field's name.

A module has three names, and nothing else in the core knows a target kind:

    RULE                what its message must be
    fill_in(message)    sets what the message leaves open
    describe(message)   the target in one line, for people

How it is executed is in `clepsydra.worker.targets`, its flags are in `clepsydra.tools.targets`.
"""

from importlib import import_module
from typing import Any, Protocol

from clepsydra.core.validation.rules import Rule
from clepsydra.v1.action_pb2 import Spec


class TargetKind(Protocol):
    RULE: Rule

    def fill_in(self, message: Any, /) -> None: ...

    def describe(self, message: Any, /) -> str: ...


_ONEOF: Any = Spec.DESCRIPTOR.oneofs_by_name["target"]

KINDS: dict[str, TargetKind] = {field.name: import_module(f"{__name__}.{field.name}") for field in _ONEOF.fields}


def describe_target(spec: Spec) -> str:
    """The target in one line.

    >>> describe_target(Spec(log={"message": "hello"})), describe_target(Spec())
    ('log "hello"', 'nothing')
    """
    kind = spec.WhichOneof("target")
    return "nothing" if kind is None else KINDS[kind].describe(getattr(spec, kind))
