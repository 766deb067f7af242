"""The table of flags: every field of a spec has a row, and every target kind a flag that chooses it."""

from collections.abc import Iterator
from typing import Any

import pytest

from clepsydra.core.targets import KINDS
from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.spec_flags.table import FLAGS
from clepsydra.v1.action_pb2 import ScheduledAction, Spec

# `clepsydra update --once` sets it.
_WITHOUT_ROW = {"spec.schedule.once"}


def _leaves(message: Any, path: str) -> Iterator[str]:
    """The fields of a message that a value can be written to, with those of its messages."""
    for field in message.fields:
        inner = field.message_type
        is_leaf = inner is None or field.is_repeated or inner.full_name.startswith("google.") or not inner.fields
        if is_leaf:
            yield f"{path}.{field.name}"
        else:
            yield from _leaves(inner, f"{path}.{field.name}")


def test_every_field_of_a_spec_has_a_row() -> None:
    rows = {flag.path for flag in FLAGS if flag.path.startswith("spec.")}
    assert rows == set(_leaves(Spec.DESCRIPTOR, "spec")) - _WITHOUT_ROW


@pytest.mark.parametrize("kind", KINDS)
def test_one_flag_chooses_a_target_and_the_others_of_its_kind_need_it(kind: str) -> None:
    rows = [flag for flag in FLAGS if flag.path.startswith(f"spec.{kind}.")]
    [choice] = [flag for flag in rows if flag.one_of == "target"]
    assert choice.metavar
    assert all(flag.needs == choice.name for flag in rows if flag is not choice)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flag_that_chooses_a_target_does_so_with_an_empty_value(kind: str) -> None:
    [choice] = [flag for flag in FLAGS if flag.one_of == "target" and flag.path.startswith(f"spec.{kind}.")]
    action = ScheduledAction()
    choice.write(action, "")
    assert action.spec.WhichOneof("target") == kind


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_a_field_that_is_not_set_is_not_shown(flag: SpecFlag) -> None:
    assert flag.show(ScheduledAction()) is None
