"""Partial updates: which paths a mask may name, and what they do to a spec.

A path names one field, at any depth. It takes that field whole from the request: set there, it replaces what is stored;
not set there, it clears what is stored. Output-only fields, single labels, entries of lists and the insides of times
and durations have no paths.
"""

from collections.abc import Iterable
from typing import Any

from clepsydra.core.validation_rules import FINE, Violations, wrong
from clepsydra.v1.action_pb2 import ScheduledAction, Spec

LABELS = "meta.labels"
_SPEC = "spec"
_PATH_LENGTH = 255


def mask_path(path: str) -> Violations:
    """The rule for one path of a mask."""
    if path in {LABELS, _SPEC}:
        return FINE
    known = len(path) <= _PATH_LENGTH and _reaches_a_field(ScheduledAction.DESCRIPTOR, path.split("."))
    if known and path.startswith("spec."):
        return FINE
    shown = ascii(path[:_PATH_LENGTH])
    if path == "meta.id":
        return wrong(f"{shown} never changes")
    if known:
        return wrong(f"{shown} is output only; an update may name {LABELS}, spec, and what lies in spec")
    return wrong(f"{shown} is not a field of an action that can be updated by itself")


def updates_spec(paths: Iterable[str]) -> bool:
    """Whether the action gets a new life, or other labels alone."""
    return any(path != LABELS for path in paths)


def merge_spec(stored: Spec, given: Spec, paths: Iterable[str]) -> None:
    """Take from `given`, into `stored`, what the paths name; they must have been checked."""
    for path in paths:
        if path == _SPEC:
            stored.CopyFrom(given)
        elif path != LABELS:
            _take(stored, given, path.split(".")[1:])


def _reaches_a_field(descriptor: Any, steps: list[str]) -> bool:
    field = descriptor.fields_by_name.get(steps[0])
    if field is None:
        return False
    if len(steps) == 1:
        return True
    inner = field.message_type
    if inner is None or field.is_repeated or inner.file.package == "google.protobuf":
        return False
    return _reaches_a_field(inner, steps[1:])


def _take(stored: Any, given: Any, steps: list[str]) -> None:
    name = steps[0]
    if len(steps) > 1:
        # To clear a field of a message that is not there, nothing needs to be done: and least of all to make it.
        if given.HasField(name) or stored.HasField(name):
            _take(getattr(stored, name), getattr(given, name), steps[1:])
        return
    field = stored.DESCRIPTOR.fields_by_name[name]
    if field.is_repeated:
        stored.ClearField(name)
        getattr(stored, name).MergeFrom(getattr(given, name))
    elif field.has_presence and not given.HasField(name):
        stored.ClearField(name)
    elif field.message_type is not None:
        getattr(stored, name).CopyFrom(getattr(given, name))
    else:
        setattr(stored, name, getattr(given, name))
