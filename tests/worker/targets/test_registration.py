"""What can be a handler, how it is called, and in what words the rest is refused."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from clepsydra.core.action.attempt import SUCCESS
from clepsydra.core.targets.handler import HANDLER_NAME_LENGTH
from clepsydra.worker import Context, Registry, handler
from clepsydra.worker.handlers.registry import InvalidHandler, registered_handlers
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import an_attempt, execute_together, handled_by

Seen = list[tuple[Any, ...]]


def functions(seen: Seen) -> dict[str, Callable[..., Any]]:
    """Every form that a function can have; each writes down what it was given."""

    def nothing() -> None:
        seen.append(())

    def payload(payload) -> None:  # type: ignore[no-untyped-def]
        seen.append((payload,))

    def context(context: Context) -> None:
        seen.append((context,))

    def both(payload: str, context: Context) -> None:
        seen.append((payload, context))

    def swapped(context: Context, payload: str) -> None:
        seen.append((context, payload))

    def positional(payload: str, context: "Context", /) -> None:
        seen.append((payload, context))

    def with_default(payload: str = "default") -> None:
        seen.append((payload,))

    return {
        "nothing": nothing,
        "payload": payload,
        "context": context,
        "both": both,
        "swapped": swapped,
        "positional": positional,
        "with_default": with_default,
    }


def other_callables(seen: Seen) -> dict[str, Callable[..., Any]]:
    """Coroutines, methods, objects and partials; each writes down what it was given."""

    async def coroutine(payload: str, context: Context) -> None:
        seen.append((payload, context))

    class Callee:
        def method(self, payload: str) -> None:
            seen.append((payload,))

        async def __call__(self, payload: str) -> None:
            seen.append((payload,))

    def bound(payload: str, *, prefix: str) -> None:
        seen.append((prefix + payload,))

    async def bound_coroutine(prefix: str, payload: str) -> None:
        seen.append((prefix + payload,))

    return {
        "coroutine": coroutine,
        "method": Callee().method,
        "callable": Callee(),
        "bound": functools.partial(bound, prefix="pre-"),
        "bound_coroutine": functools.partial(bound_coroutine, "pre-"),
    }


ATTEMPT = an_attempt(handled_by("it", b"x"))
CONTEXT = ATTEMPT.context
GIVEN: dict[str, tuple[Any, ...]] = {
    "nothing": (),
    "payload": (b"x",),
    "context": (CONTEXT,),
    "both": ("x", CONTEXT),
    "swapped": (CONTEXT, "x"),
    "positional": ("x", CONTEXT),
    "with_default": ("x",),
    "coroutine": ("x", CONTEXT),
    "method": ("x",),
    "callable": ("x",),
    "bound": ("pre-x",),
    "bound_coroutine": ("pre-x",),
}


@pytest.mark.parametrize("form", GIVEN)
async def test_a_handler_is_given_what_it_asks_for(targets: Targets, registry: Registry, form: str) -> None:
    seen: Seen = []
    function = (functions(seen) | other_callables(seen))[form]
    assert registry.handler("it")(function) is function
    assert list(await execute_together(targets, [ATTEMPT])) == [SUCCESS]
    assert seen == [GIVEN[form]]


def three(a: bytes, b: bytes, c: Context) -> None: ...


def two_payloads(payload, context) -> None:  # type: ignore[no-untyped-def]
    ...


def two_contexts(a: Context, b: Context) -> None: ...


def context_by_name(context) -> None:  # type: ignore[no-untyped-def]
    ...


def optional_context(context: Context | None) -> None: ...


def many(*payloads: bytes) -> None: ...


def keywords(**keywords: bytes) -> None: ...


def keyword_only(*, payload: bytes) -> None: ...


def method(self: Any, context: Context) -> None: ...


def generator(payload: bytes) -> Iterator[None]:
    yield


async def async_generator(payload: bytes) -> AsyncIterator[None]:
    yield


def unknown_name(payload: "NoSuchType") -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Opaque: ...


def opaque(payload: Opaque) -> None: ...


REFUSED: list[tuple[Any, str]] = [
    (three, "it takes (a, b, c), but a handler takes at most one payload and one context"),
    (two_payloads, "annotate the parameter that takes the context with `Context`"),
    (two_contexts, "it takes (a, b), but a handler takes at most one payload and one context"),
    (context_by_name, "its parameter `context` would be given the payload: write `context: Context`"),
    (optional_context, "a payload cannot be decoded into "),
    (many, "it cannot be given `*payloads: bytes`"),
    (keywords, "it cannot be given `**keywords: bytes`"),
    (keyword_only, "it cannot be given `payload: bytes`"),
    (method, "a method cannot be a handler by itself: register it from an object"),
    (generator, "a generator cannot be a handler"),
    (async_generator, "a generator cannot be a handler"),
    (unknown_name, "its annotations cannot be read (NameError: name 'NoSuchType' is not defined)"),
    (opaque, "annotate it with bytes, str, a protobuf message, a pydantic model"),
    (Opaque, "a class cannot be a handler"),
    (7, "it cannot be called"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED)
def test_a_wrong_signature_is_refused(registry: Registry, function: Any, reason: str) -> None:
    with pytest.raises(InvalidHandler) as refused:
        registry.handler("it")(function)
    assert str(refused.value).startswith('handler "it" (')
    assert reason in str(refused.value)
    assert registry.names() == []


def test_a_name_is_registered_once(registry: Registry) -> None:
    @registry.handler("it")
    def first() -> None: ...

    def second() -> None: ...

    with pytest.raises(InvalidHandler, match=r'handler "it" is registered twice, by .*first and by .*second'):
        registry.handler("it")(second)
    assert registry.names() == ["it"]


@pytest.mark.parametrize("name", ["", "x" * (HANDLER_NAME_LENGTH + 1)])
def test_a_name_has_a_length(registry: Registry, name: str) -> None:
    with pytest.raises(InvalidHandler, match="1 to 255 characters"):
        registry.handler(name)


def test_a_name_must_be_given(registry: Registry) -> None:
    with pytest.raises(InvalidHandler, match=r'write @handler\("name"\)'):

        @registry.handler  # type: ignore[arg-type]
        def nameless() -> None: ...


def test_the_decorator_registers_into_what_workers_execute_from() -> None:
    @handler("test-registration-default")
    def registered() -> None: ...

    found = registered_handlers.handlers.get("test-registration-default")
    assert found is not None
    assert not found.is_async
