"""The command `clepsydra`.

The module of a command is imported when the command is called, so that `--help` answers at once. Every error ends as
one sentence on stderr and an exit code, never as a traceback.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from clepsydra.store.errors import OtherShards, StoreError, WrongUrl
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.format.terminal import open_closed_streams
from clepsydra.tools.format.text import printable


class Entry(NamedTuple):
    """A command in the list of commands."""

    summary: str
    # The module in the section's folder, if its name is not the name of the command.
    module: str | None = None


# Each section of the help text is a folder in `clepsydra.tools.commands`.
_SECTIONS: dict[str, dict[str, Entry]] = {
    "run": {
        "up": Entry("Run a store, a scheduler and a worker in one process."),
        "init": Entry("Make a store, with its number of shards."),
        "scheduler": Entry("Serve the gRPC API on a store."),
        "worker": Entry("Execute the actions of a store."),
    },
    "actions": {
        "add": Entry("Schedule an action, or a file of actions."),
        "get": Entry("Show an action."),
        "list": Entry("List actions."),
        "export": Entry("Write actions with their status to a file."),
        "import": Entry("Take over the actions of an export.", module="import_file"),
        "update": Entry("Change what an action does, or when."),
        "rm": Entry("Remove actions."),
        "pause": Entry("Pause actions.", module="state_changes"),
        "resume": Entry("Resume paused actions.", module="state_changes"),
        "run": Entry("Run actions now.", module="state_changes"),
        "cancel": Entry("Cancel the current run of actions."),
    },
    "follow": {
        "explain": Entry("Explain why an action runs, waits, or does not run."),
        "watch": Entry("Follow an action until it ends."),
    },
    "operate": {
        "locks": Entry("Show which worker holds which shard, and what waits there."),
        "stats": Entry("Count what is in a store."),
        "audit": Entry("Check that every action has exactly one live row."),
        "backup": Entry("Copy a SQLite store while it is in use."),
        "config": Entry("Show the settings, and the origin of each."),
        "completion": Entry("Print the completion script of a shell."),
    },
}
_MODULES = {
    name: f"clepsydra.tools.commands.{section}.{entry.module or name}"
    for section, entries in _SECTIONS.items()
    for name, entry in entries.items()
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _MODULES.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(import_module(module), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, entries in _SECTIONS.items():
            with formatter.section(section.capitalize()):
                formatter.write_dl([(name, entry.summary) for name, entry in entries.items()])


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"clepsydra {version('clepsydra')}")
        ctx.exit()


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
A first action in a minute:
  clepsydra up
  clepsydra add hello --in 5s --log "hello"     (in another terminal)
  clepsydra get hello

Every command has --help. Exit codes: 0 done, 1 the answer is no, 2 wrong usage or input, 3 not found, 4 refused in the
present state, 5 no scheduler or no store.""",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
@click.pass_context
def clepsydra(ctx: click.Context) -> None:
    """Schedule actions: an HTTP request, a Python handler or a log line, once or periodically, with none lost."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """The entry point of the installed script."""
    open_closed_streams()
    # Without this, gRPC writes lines of its own to stderr before the one sentence.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        return _call(arguments)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "clepsydra"
        return _fail(f"{_one_sentence(error.format_message())} (see {where} --help)", Exit.USAGE)
    except click.ClickException as error:
        return _fail(_one_sentence(error.format_message()), Exit.USAGE)
    except Failure as error:
        return _fail(str(error), error.code)
    except StoreError as error:
        return _fail(str(error), _exit_of_store_error(error))
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of the output has gone.
        _drop_output()
        return 128 + signal.SIGPIPE
    except SystemExit as ended:
        # click exits with 1 when the reader of its output has gone, and with 0 after a shell completion.
        return 128 + signal.SIGPIPE if ended.code == 1 else Exit.OK
    except OSError as error:
        _drop_output()
        return _fail(f"an operating system error: {error}", Exit.UNAVAILABLE)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        return _fail(f"a defect of Clepsydra: {type(error).__name__}: {error} ({place}); please report it", Exit.DEFECT)


def _call(arguments: Sequence[str]) -> int:
    returned: Any = clepsydra.main(list(arguments), prog_name="clepsydra", standalone_mode=False)
    sys.stdout.flush()
    return returned if isinstance(returned, int) else Exit.OK


def _drop_output() -> None:
    """At exit, Python flushes what is left of the output. It must not fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_of_store_error(error: StoreError) -> Exit:
    if isinstance(error, WrongUrl):
        return Exit.USAGE
    return Exit.REFUSED if isinstance(error, OtherShards) else Exit.UNAVAILABLE


def _one_sentence(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


def _fail(sentences: str, code: Exit) -> int:
    for sentence in map(printable, sentences.splitlines()):
        # An indented line belongs to the sentence before it.
        click.echo(sentence if sentence.startswith(" ") else f"clepsydra: {sentence}", err=True)
    return code
