"""Progress on stderr: a number that counts up in place for a person, and a line now and then for a log."""

import sys

import click


class ProgressCounter:
    """A number that counts up in one line, if stderr is a terminal. Without one, `line_every` many make a line."""

    def __init__(self, noun: str, line_every: int | None = None) -> None:
        self._noun = noun
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._line_every = line_every
        self._lines = 0
        self._width = 0

    def show(self, number: int) -> None:
        text = f"{number:,} {self._noun}"
        if self._is_terminal:
            self._write(f"\r{text:<{self._width}}")
            self._width = len(text)
        elif self._line_every and number // self._line_every > self._lines:
            self._lines = number // self._line_every
            self._write(text + "\n")

    def clear(self) -> None:
        if self._is_terminal and self._width:
            # Blanks, because a terminal that knows no escape sequences would show them.
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        click.echo(text, nl=False, err=True)
