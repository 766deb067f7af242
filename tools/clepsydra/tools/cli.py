"""The command `clepsydra`.

A command's module is imported when the command is called, so that `--help` answers at once. Whatever goes wrong ends
as one sentence on stderr and an exit code: never as a traceback.
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


class Entry(NamedTuple):
    """A command: where it is, and what the list of commands says about it."""

    module: str
    summary: str


_SECTIONS: dict[str, dict[str, Entry]] = {
    "Run": {
        "up": Entry("up", "Everything in one process: store, scheduler and worker."),
        "init": Entry("init", "Make a store, with its number of shards."),
        "scheduler": Entry("scheduler", "Serve the gRPC API on a store."),
        "worker": Entry("worker", "Execute the actions of a store."),
    },
    "Actions": {
        "add": Entry("add", "Schedule an action, or a file of them."),
        "get": Entry("reading", "Show an action."),
        "list": Entry("reading", "List actions."),
        "update": Entry("update", "Change what an action does, or when."),
        "rm": Entry("changing", "Remove actions."),
        "pause": Entry("changing", "Hold actions back."),
        "resume": Entry("changing", "Let paused actions go on."),
        "run": Entry("changing", "Run actions now."),
    },
    "Operate": {
        "locks": Entry("locks", "Show which worker holds which shard, and what waits there."),
        "stats": Entry("stats", "Count what is in a store."),
        "audit": Entry("audit", "Check that every action has exactly one live row."),
        "config": Entry("config", "Show the settings, and where each comes from."),
    },
}
_ENTRIES = {name: entry for section in _SECTIONS.values() for name, entry in section.items()}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"clepsydra.tools.commands.{entry.module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, entries in _SECTIONS.items():
            with formatter.section(title):
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

Every command explains itself with --help. Exit codes: 0 done, 1 the answer is no, 2 wrong usage or input, 3 not found,
4 refused in the present state, 5 no scheduler or no store.""",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Which one.")
@click.pass_context
def clepsydra(ctx: click.Context) -> None:
    """Schedule actions: an HTTP request, a Python handler or a log line, once or again and again, with none lost."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """What the installed script calls."""
    # gRPC's own lines on stderr would come on top of the one sentence; whoever wants them sets the variable.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        return _carry_out(arguments)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "clepsydra"
        return _fail(f"{_one_sentence(error.format_message())} (see {where} --help)", Exit.USAGE)
    except click.ClickException as error:
        return _fail(_one_sentence(error.format_message()), Exit.USAGE)
    except Failure as error:
        return _fail(str(error), error.code)
    except StoreError as error:
        return _fail(str(error), _code_of_store(error))
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python must not stumble over the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except SystemExit as ended:
        # How click ends when the reader of its output has gone; and, with 0, when it completed a line of the shell.
        return 128 + signal.SIGPIPE if ended.code == 1 else Exit.OK
    except OSError as error:
        return _fail(f"the operating system refused: {error}", Exit.UNAVAILABLE)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        return _fail(f"a defect of Clepsydra: {type(error).__name__}: {error} ({place}); please report it", Exit.DEFECT)


def _carry_out(arguments: Sequence[str]) -> int:
    returned: Any = clepsydra.main(list(arguments), prog_name="clepsydra", standalone_mode=False)
    sys.stdout.flush()
    return returned if isinstance(returned, int) else Exit.OK


def _code_of_store(error: StoreError) -> Exit:
    if isinstance(error, WrongUrl):
        return Exit.USAGE
    return Exit.REFUSED if isinstance(error, OtherShards) else Exit.UNAVAILABLE


def _one_sentence(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


def _fail(sentences: str, code: Exit) -> int:
    for sentence in sentences.splitlines():
        # An indented line tells more of the sentence before it.
        click.echo(sentence if sentence.startswith(" ") else f"clepsydra: {sentence}", err=True)
    return code
