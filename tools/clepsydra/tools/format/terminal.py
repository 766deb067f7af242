"""Escape sequences are sent only to a terminal that understands them, and only if the user has not turned them off."""

import os
import sys
from collections.abc import Mapping
from typing import Any


def allows_escapes(stream: Any, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether colours, bold text and movements of the cursor may be written to this stream.

    NO_COLOR (https://no-color.org) and TERM=dumb stand for a wish for plain text, so they also turn off bold.
    """
    if stream is None or not stream.isatty():
        return False
    return not environment.get("NO_COLOR") and environment.get("TERM", "dumb") not in {"dumb", "unknown", ""}


def open_closed_streams() -> None:
    """Replace standard streams that the caller has closed (`>&-`) by the null device.

    Otherwise the next file or connection would get the number of the closed stream, and output would go there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # for the life of the process


def is_closed(stream: Any) -> bool:
    """Whether the caller has closed this stream: see `open_closed_streams`."""
    return getattr(stream, "name", None) == os.devnull
