"""Text of users, made safe to print; and counted nouns."""


def printable(text: str) -> str:
    """The text in one line. Control characters are escaped, so that the terminal does not obey them.

    >>> printable("a" + chr(27) + "b")
    'a\\\\x1bb'
    """
    return text if text.isprintable() else repr(text)[1:-1]


def printable_lines(text: str) -> str:
    """The same, but lines stay lines: for what is written by this program and quotes others."""
    return "\n".join(map(printable, text.split("\n")))


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
