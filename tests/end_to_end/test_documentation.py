"""Help texts and documentation agree with the command: flags, exit codes, examples."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clepsydra.tools.cli import clepsydra
from clepsydra.tools.exits import Exit
from clepsydra.tools.spec_flags.table import FLAGS
from tests.end_to_end.conftest import Command
from tests.end_to_end.processes import SCRIPT, environment

_ROOT = Path(__file__).parents[2]
_CLI = _ROOT / "docs" / "cli.md"
_EXAMPLE = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?clepsydra (?P<arguments>[a-z].*)$", re.MULTILINE)

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

_GROUP = click.Context(clepsydra)
_COMMANDS = clepsydra.list_commands(_GROUP)


def _command(name: str) -> click.Command:
    command = clepsydra.get_command(_GROUP, name)
    assert command is not None
    return command


def _examples() -> Iterator[tuple[str, str]]:
    texts = {path.name: path.read_text() for path in [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md"))]}
    # In the documentation, only code blocks are examples.
    texts = {name: "\n".join(_BLOCK.findall(text)) for name, text in texts.items()}
    texts |= {f"{name} --help": _command(name).epilog or "" for name in _COMMANDS}
    texts["--help"] = clepsydra.epilog or ""
    for source, text in texts.items():
        for match in _EXAMPLE.finditer(text):
            yield source, match["arguments"]


_EXAMPLES = list(_examples())


@pytest.mark.parametrize(("source", "example"), _EXAMPLES, ids=lambda text: text)
def test_every_example_can_be_typed(source: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.json").write_text("{}")
    tokens = shlex.shlex(example, posix=True, punctuation_chars="|>&;()")
    tokens.whitespace_split = True
    name, *arguments = _before_the_pipe(tokens)
    context = click.Context(clepsydra, info_name="clepsydra")
    # Parses the arguments without running the command.
    _command(name).make_context(name, arguments, parent=context)


def _before_the_pipe(tokens: shlex.shlex) -> Iterator[str]:
    for token in tokens:
        if token in {"|", ">", ">>", "&", "&&", ";", "("}:
            return
        yield token


def test_every_command_has_examples_of_its_own() -> None:
    for name in _COMMANDS:
        shown = [example.split()[0] for source, example in _EXAMPLES if source == f"{name} --help"]
        assert name in shown, f"clepsydra {name} --help shows no example"


def _flags(name: str) -> list[click.Option]:
    """The flags that help shows."""
    return [flag for flag in _command(name).params if isinstance(flag, click.Option) and not flag.hidden]


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_has_help(command: Command, name: str) -> None:
    shown = command(name, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"Usage: clepsydra {name} ")
    assert all(flag.help for flag in _flags(name))


@pytest.mark.parametrize("name", _COMMANDS)
def test_the_documentation_names_every_flag(name: str) -> None:
    text = _CLI.read_text()
    section = re.search(rf"^### [^\n]*`clepsydra {name}`.*?(?=^##)", text + "\n##", re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/cli.md has no section on clepsydra {name}"
    everywhere = {"--config", "--set", "--server", "--store", "--log-level", "--log-format"}
    if name == "update":
        everywhere |= {flag.name for flag in FLAGS}
    if name == "config":
        everywhere |= {"--listen", "--handlers", "--name"}
    flags = {option for flag in _flags(name) for option in flag.opts}
    missing = {flag for flag in flags - everywhere if f"`{flag}" not in section[0]}
    assert not missing


def test_the_documentation_gives_every_flag_its_field() -> None:
    rows = dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| `([a-z_.]+)` \|", _CLI.read_text(), re.MULTILINE))
    assert rows == {flag.name: flag.path for flag in FLAGS}


def test_the_documentation_lists_every_exit_code() -> None:
    table = _CLI.read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    codes = {int(code) for row in re.findall(r"^\| ([0-9, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert codes == {*map(int, Exit), 130, 143, 141}


def test_version_and_help(command: Command) -> None:
    assert command("--version").out.startswith("clepsydra ")
    assert command().out == command("--help").out == command("-h").out
    assert all(f"\n  {name} " in command("--help").out for name in _COMMANDS)


def test_help_loads_no_heavy_module() -> None:
    heavy = ("aiohttp", "apsw", "asyncio", "google.protobuf", "grpc", "pydantic", "rich", "structlog", "uvloop")
    program = (
        "import sys; from clepsydra.tools.cli import run; run(['--help']); "
        f"print('loaded:', [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_a_reader_that_closes_the_pipe_causes_no_message(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [SCRIPT, "config"], cwd=tmp_path, env=environment(), stdout=write_end, stderr=subprocess.PIPE, check=False
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")
