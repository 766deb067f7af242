"""Flags of a call of a Python handler."""

from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.fields.types import CONTENT, NAME

FLAGS = (
    SpecFlag(
        "--handler",
        "spec.handler.name",
        NAME,
        "Call the Python handler with this name.",
        metavar="NAME",
        one_of="target",
        has_own_line=False,
    ),
    SpecFlag("--payload", "spec.handler.payload", CONTENT, "The argument of the handler.", needs="--handler"),
    SpecFlag(
        "--content-type",
        "spec.handler.content_type",
        NAME,
        "The media type of the payload.",
        metavar="TYPE",
        needs="--handler",
    ),
)
