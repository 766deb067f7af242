"""How a worker finds its handlers, and what it says when it does not."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clepsydra.worker import Registry
from clepsydra.worker.handlers.loading import HandlersNotLoaded, load_handlers
from clepsydra.worker.handlers.registry import registered_handlers

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module into an otherwise empty current directory, which is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(registered_handlers, "handlers", {})

    def write_module(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    return write_module


HANDLERS = """
from clepsydra.worker import handler

@handler("greet")
async def greet(name: str) -> None: ...
"""


def test_a_module_in_the_current_directory(write: Write) -> None:
    write("greetings.py", HANDLERS)
    assert load_handlers("greetings").names() == ["greet"]


def test_a_module_in_a_package(write: Write) -> None:
    write("app/greetings.py", HANDLERS)
    assert load_handlers("app.greetings").names() == ["greet"]


def test_loading_twice_registers_once(write: Write) -> None:
    write("app/__init__.py", "from app import greetings")
    write("app/greetings.py", HANDLERS)
    assert load_handlers("app.greetings").names() == ["greet"]
    assert load_handlers("app").names() == ["greet"]


@pytest.mark.parametrize("name", ["no_such_module", "no_such_package.handlers", "app.no_such_module"])
def test_no_such_module(write: Write, name: str) -> None:
    write("app/__init__.py", "")
    with pytest.raises(HandlersNotLoaded, match=f'there is no module "{name}"'):
        load_handlers(name)


@pytest.mark.parametrize("name", ["", ".", ".handlers", "handlers.py:", "app/handlers", "handlers "])
def test_not_a_modules_name(write: Write, name: str) -> None:
    with pytest.raises(HandlersNotLoaded, match="is not the name of a module: write it as in an import statement"):
        load_handlers(name)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_dependency", "ModuleNotFoundError: No module named 'no_such_dependency'"),
        ("\n\n1 / 0", "ZeroDivisionError: division by zero (.*greetings.py:3)"),
        ("def f(:", "SyntaxError: "),
        ("raise SystemExit(2)", "SystemExit: 2"),
    ],
)
def test_a_module_that_fails(write: Write, text: str, reason: str) -> None:
    write("greetings.py", text)
    expected = 'module "greetings" could not be imported: ' + reason.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(HandlersNotLoaded, match=expected):
        load_handlers("greetings")


def test_a_module_whose_handler_is_refused(write: Write) -> None:
    write("greetings.py", HANDLERS.replace("name: str", "*names"))
    with pytest.raises(HandlersNotLoaded, match=r'module "greetings" could not be loaded: handler "greet" .* refused'):
        load_handlers("greetings")


def test_a_module_without_handlers(write: Write) -> None:
    write("greetings.py", "")
    with pytest.raises(HandlersNotLoaded, match='module "greetings" registers no handler: decorate'):
        load_handlers("greetings")


def test_handlers_of_another_registry_do_not_count(write: Write) -> None:
    write("greetings.py", HANDLERS)
    with pytest.raises(HandlersNotLoaded, match="registers no handler"):
        load_handlers("greetings", Registry())
