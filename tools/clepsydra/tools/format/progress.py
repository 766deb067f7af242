"""Progress on stderr while a person waits."""

import sys

import click


class ProgressCounter:
    """A number that counts up in one line, if stderr is a terminal."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._is_shown = sys.stderr.isatty()

    def show(self, number: int) -> None:
        if self._is_shown:
            click.echo(f"\r{number:,} {self._noun}", nl=False, err=True)

    def clear(self) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)
