"""The flags of each target kind: one module for each field of the oneof `target` in a spec, under the field's name.

A module has one name, and nothing else in the tools knows a target kind:

    FLAGS    its rows of the flag table; the row with `one_of="target"` chooses the target, and the others need it
"""

from importlib import import_module

from clepsydra.core.targets import KINDS
from clepsydra.tools.fields.flag import SpecFlag

TARGET_FLAGS: tuple[SpecFlag, ...] = tuple(flag for kind in KINDS for flag in import_module(f"{__name__}.{kind}").FLAGS)
