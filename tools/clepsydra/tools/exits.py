"""How a command ends: one sentence on stderr, and an exit code for scripts. `docs/cli.md` has the same table."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    # The answer is no: the audit found a violation, or some lines of a file failed.
    NEGATIVE = 1
    # The command, or a value in it, is wrong.
    USAGE = 2
    NOT_FOUND = 3
    # It exists already, or its state does not allow the command.
    REFUSED = 4
    # No scheduler answers, or the store cannot be used.
    UNAVAILABLE = 5
    # A defect of Clepsydra.
    DEFECT = 70


class Failure(Exception):
    """The command failed. The text says what happened, to what, and what to do about it."""

    def __init__(self, sentence: str, code: Exit) -> None:
        super().__init__(sentence)
        self.code = code
