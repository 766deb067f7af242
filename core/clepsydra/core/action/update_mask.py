"""Partial updates: which paths a mask may name, and what they do to a spec.

A path names one field, at any depth. The update takes that whole field from the request: a field that is set there
replaces the stored one, a field that is not set there clears it. Output-only fields, single labels, entries of lists
and the insides of times and durations have no paths.
"""

from collections.abc import Iterable
from typing import Any

from clepsydra.core.validation.rules import VALID, Violations, violation
from clepsydra.v1.action_pb2 import ScheduledAction, Spec

LABELS = "meta.labels"
_SPEC = "spec"
_START_TIME = "spec.schedule.start_time"
_PATH_LENGTH = 255


def mask_path(path: str) -> Violations:
    """The rule for one path of a mask."""
    if path in {LABELS, _SPEC}:
        return VALID
    known = len(path) <= _PATH_LENGTH and _reaches_a_field(ScheduledAction.DESCRIPTOR, path.split("."))
    if known and path.startswith("spec."):
        return VALID
    shown = ascii(path[:_PATH_LENGTH])
    if path == "meta.id":
        return violation(f"{shown} never changes")
    if known:
        return violation(f"{shown} is output only; an update may name {LABELS}, spec, and what lies in spec")
    return violation(f"{shown} is not a field of an action that can be updated by itself")


def updates_spec(paths: Iterable[str]) -> bool:
    """Whether the mask names more than the labels."""
    return any(path != LABELS for path in paths)


def clears_start(paths: Iterable[str]) -> bool:
    """Whether the mask names the start itself: without a value it then means now, as in a creation."""
    return _START_TIME in paths


def merge_spec(stored: Spec, given: Spec, paths: Iterable[str]) -> None:
    """Copy the fields that the paths name from `given` to `stored`. The paths must have been checked."""
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
        # Clearing a field of a message that neither side has must not create that message.
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
