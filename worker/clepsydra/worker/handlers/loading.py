"""Imports the module that registers a worker's handlers."""

import importlib
import os
import sys
import traceback

from clepsydra.worker.handlers.registry import InvalidHandler, Registry, registered_handlers


class HandlersNotLoaded(Exception):
    """The module could not be loaded or registers no handler: the text says why, and what to do."""


def load_handlers(module_name: str, registry: Registry = registered_handlers) -> Registry:
    """Import a module, by the name that an import statement would use, for the handlers that it registers.

    The current directory can be imported from, as with `python -m`.
    """
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise HandlersNotLoaded(
            f'"{module_name}" is not the name of a module: write it as in an import statement, such as '
            "app.handlers for the file app/handlers.py"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    is_new = module_name not in sys.modules
    known = set(registry.names())
    _import(module_name)
    if is_new and known.issuperset(registry.names()):
        raise HandlersNotLoaded(
            f'module "{module_name}" registers no handler: decorate functions with @handler("name") from '
            "clepsydra.worker"
        )
    return registry


def _import(module_name: str) -> None:
    try:
        importlib.import_module(module_name)
    except InvalidHandler as error:
        raise HandlersNotLoaded(f'module "{module_name}" could not be loaded: {error}') from error
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and _is_or_contains(module_name, error.name):
            raise HandlersNotLoaded(
                f'there is no module "{module_name}": it is looked for in the current directory and among the '
                "installed packages"
            ) from error
        raise HandlersNotLoaded(
            f'module "{module_name}" could not be imported: {type(error).__name__}: {error} ({_where(error)})'
        ) from error


def _is_or_contains(module_name: str, missing: str | None) -> bool:
    """Whether the module that was not found is this one or a package that contains it."""
    return missing is not None and (module_name == missing or module_name.startswith(missing + "."))


def _where(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"
