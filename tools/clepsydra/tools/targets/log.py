"""Flags of a line in the worker's log."""

from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.fields.types import TEXT

FLAGS = (
    SpecFlag(
        "--log",
        "spec.log.message",
        TEXT,
        "Write this line to the worker's log.",
        metavar="LINE",
        one_of="target",
        has_own_line=False,
    ),
)
