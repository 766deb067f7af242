"""`clepsydra backup`: copies a SQLite store that is in use."""

import click

from clepsydra.store.url import sqlite_path
from clepsydra.store.url_options import without_password
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.fields.types import NAME_PARAMETER
from clepsydra.tools.format.progress import ProgressCounter
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings

_MB = 1_000_000
_LINE_EVERY_MB = 1_000

_OTHER_STORES = {
    "postgres": "PostgreSQL has its own: pg_dump for one schema, or pg_basebackup with its log",
    "postgresql": "PostgreSQL has its own: pg_dump for one schema, or pg_basebackup with its log",
    "ydb": "YDB has its own: ydb tools dump, or ydb export s3",
    "ydbs": "YDB has its own: ydb tools dump, or ydb export s3",
}


@click.command(
    "backup",
    epilog="""\b
Examples:
  clepsydra backup backups/monday.db
  clepsydra backup --store sqlite:////var/lib/clepsydra/actions.db /mnt/backups/actions.db

The copy is a store itself: one consistent moment of it, complete under its name when the command has ended. Schedulers
and workers go on meanwhile. An existing file is never overwritten. docs/sqlite.md says how to restore.""",
)
@click.argument("file", metavar="FILE", type=NAME_PARAMETER)
@flags.store
@flags.with_settings
def backup_command(settings: Settings, file: str) -> None:
    """Copy a SQLite store to a file while it is in use."""
    scheme = settings.store.partition(":")[0]
    if scheme in _OTHER_STORES:
        shown = without_password(settings.store)
        raise Failure(
            f"backup copies SQLite files, and the store is {shown}: {_OTHER_STORES[scheme]}; "
            "`clepsydra export` writes the actions of any store",
            Exit.USAGE,
        )
    from clepsydra.store.sqlite.backup import back_up

    progress = ProgressCounter("MB copied", _LINE_EVERY_MB)
    try:
        size = back_up(sqlite_path(settings.store), file, lambda done, _all: progress.show(done // _MB))
    except FileExistsError:
        raise Failure(
            f"{file} exists already, and a backup overwrites nothing: name another file", Exit.REFUSED
        ) from None
    finally:
        progress.clear()
    click.echo(f"The store {settings.store} is copied to {file}: {size / _MB:,.1f} MB.")
