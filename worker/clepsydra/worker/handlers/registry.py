"""The registry of handlers: the decorator that registers a function, and the exceptions that it may raise.

    from clepsydra.worker import Context, DoNotRetry, RetryAfter, handler

    @handler("send-invoice")
    async def send_invoice(invoice: Invoice, context: Context) -> None:
        ...

A handler that returns has succeeded, whatever it returns. A handler that raises has failed and is tried again as its
action's retry policy says, unless it raises `RetryAfter` or `DoNotRetry`.

With `batch` a handler is called with a list of payloads, and returns an outcome for each:

    @handler("add-to-index", batch=500)
    async def add_to_index(documents: list[Document]) -> list[Exception | None]:
        ...
"""

import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.targets.handler import HANDLER_NAME_LENGTH, HANDLER_NAME_PATTERN
from clepsydra.core.times import SECOND_US
from clepsydra.worker.handlers.payloads import Decode
from clepsydra.worker.handlers.signatures import Call, CallMany, WrongSignature, call_many_of, call_of, is_async

_Function = TypeVar("_Function", bound=Callable[..., Any])


class RetryAfter(Exception):
    """The attempt has failed; try again after this long, instead of after the retry policy's delay.

    The policy's limits on attempts and elapsed time still hold. A wait longer than the longest allowed one is cut.
    """

    def __init__(self, delay: float | timedelta, reason: str = "") -> None:
        delay_s = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if math.isnan(delay_s) or delay_s < 0:
            raise ValueError(f"RetryAfter takes a delay of 0 seconds or more, not {delay_s}")
        super().__init__(reason or f"the handler asked to be tried again after {delay_s:g} s")
        self.delay_us = round(min(delay_s * SECOND_US, RETRY_DELAY_MAX_US))


class DoNotRetry(Exception):
    """The attempt has failed, and no other attempt would succeed."""

    def __init__(self, reason: str = "the handler asked not to be tried again") -> None:
        super().__init__(reason)


class InvalidHandler(Exception):
    """A function cannot be registered: the text says why, and what to do."""


class Handler(NamedTuple):
    """A registered function."""

    name: str
    call: Call
    is_async: bool
    # Where it is defined, for error messages.
    place: str


class BatchHandler(NamedTuple):
    """A registered function that takes up to `batch` payloads in one call."""

    name: str
    call: CallMany
    decode: Decode
    batch: int
    is_async: bool
    place: str


class Registry:
    """The handlers of a worker by name. Most programs need only the one that `handler` registers into.

    >>> registry = Registry()
    >>> @registry.handler("greet")
    ... def greet(name: str) -> None: ...
    >>> registry.names()
    ['greet']
    """

    def __init__(self) -> None:
        # By name.
        self.handlers: dict[str, Handler | BatchHandler] = {}
        # Those that take many payloads at once; often there are none.
        self.batch_handlers: dict[str, BatchHandler] = {}
        # The names of those that are coroutines.
        self.coroutines: set[str] = set()

    def handler(self, name: str, *, batch: int | None = None) -> Callable[[_Function], _Function]:
        """Register the decorated function under this name, which actions refer to. The function is not changed.

        With `batch` it takes lists: the payloads of up to this many actions that are due together.
        """
        _check_name(name)
        _check_batch(batch)

        def register(function: _Function) -> _Function:
            self._add(name, function, batch)
            return function

        return register

    def names(self) -> list[str]:
        return sorted(self.handlers)

    def _add(self, name: str, function: Callable[..., Any], batch: int | None) -> None:
        place = _place(function)
        registered = self.handlers.get(name)
        if registered is not None:
            raise InvalidHandler(
                f'handler "{name}" is registered twice, by {registered.place} and by {place}: names are unique on a '
                "worker, rename one"
            )
        try:
            if batch is None:
                self.handlers[name] = Handler(name, call_of(function), is_async(function), place)
            else:
                call, decode = call_many_of(function)
                takes_many = BatchHandler(name, call, decode, batch, is_async(function), place)
                self.handlers[name] = self.batch_handlers[name] = takes_many
        except WrongSignature as error:
            raise InvalidHandler(f'handler "{name}" ({place}) is refused: {error}') from error
        if self.handlers[name].is_async:
            self.coroutines.add(name)


# The registry of `handler`, from which a worker executes.
registered_handlers = Registry()

handler = registered_handlers.handler


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise InvalidHandler(f'a handler is registered under a name: write @handler("name"), not @handler on {name!r}')
    if not 0 < len(name) <= HANDLER_NAME_LENGTH:
        raise InvalidHandler(f"a handler's name has 1 to {HANDLER_NAME_LENGTH} characters, not {len(name)}")
    if not re.fullmatch(HANDLER_NAME_PATTERN, name):
        # The scheduler would refuse every action that names it.
        raise InvalidHandler(f"a handler's name has letters, digits, '_', '.', ':', '/' and '-', unlike {name!r}")


def _check_batch(batch: int | None) -> None:
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
        raise InvalidHandler(
            f"`batch` says how many payloads a handler takes at most: a number from 1 on, not {batch!r}"
        )


def _place(function: Callable[..., Any]) -> str:
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}.{name}" if module else name
