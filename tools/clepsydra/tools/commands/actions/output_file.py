"""Files that a command writes: complete under their name, or not there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.format.terminal import is_closed

# What is exported can contain secrets of users.
_MODE = 0o600


@contextmanager
def open_output(name: str) -> Iterator[BinaryIO]:
    """Open a file for writing; the name - is the standard output. A regular file gets its name when it is complete."""
    if name == "-":
        if is_closed(sys.stdout):
            raise Failure("the standard output is closed: name a file", Exit.USAGE)
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    is_special = path.exists() and not path.is_file()
    written = path if is_special else path.with_name(path.name + ".part")
    try:
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
    except OSError as error:
        raise Failure(f"the file {name!r} cannot be written: {error.strerror}", Exit.USAGE) from error
    try:
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if not is_special:
                os.fsync(descriptor)
        if not is_special:
            written.replace(path)
    except BaseException:
        if not is_special:
            written.unlink(missing_ok=True)
        raise
