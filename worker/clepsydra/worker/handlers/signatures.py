"""How a handler is called: read from its signature once, when it is registered.

A handler takes a payload, a context, both or nothing. The parameter annotated with `Context` receives the context, the
other one the payload. Keyword-only parameters with defaults are ignored, so that a `functools.partial` can bring its
own arguments. A batch handler takes `list[...]` of either.
"""

import inspect
import typing
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, NamedTuple

from clepsydra.worker.handlers.payloads import Decode, NoDecoder, decoder_for
from clepsydra.worker.running import Context, RunningAttempt

# From the payload, its content type and the attempt to what the handler returns, which is a coroutine if it is async.
Call = Callable[[bytes, str, RunningAttempt], Any]
# The same for a batch handler, from decoded payloads and their attempts.
CallMany = Callable[[list[Any], Sequence[RunningAttempt]], Any]

_POSITIONAL = frozenset({Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD})


class WrongSignature(Exception):
    """A function cannot be a handler: the text says why, and what to do."""


class _Roles(NamedTuple):
    payload: Parameter | None
    context: Parameter | None
    context_first: bool


def call_of(function: Callable[..., Any]) -> Call:
    """A call that has the same form for every handler."""
    _check_callable(function)
    roles = _roles(_parameters(function))
    if roles.payload is None:
        if roles.context is None:
            return lambda _payload, _content_type, _attempt: function()
        return lambda _payload, _content_type, attempt: function(attempt.context)
    decode = _decoder(roles.payload)
    if roles.context is None:
        return lambda payload, content_type, _attempt: function(decode(payload, content_type))
    if roles.context_first:
        return lambda payload, content_type, attempt: function(attempt.context, decode(payload, content_type))
    return lambda payload, content_type, attempt: function(decode(payload, content_type), attempt.context)


def call_many_of(function: Callable[..., Any]) -> tuple[CallMany, Decode]:
    """A call that has the same form for every batch handler, and the decoder of each of its payloads."""
    _check_callable(function)
    roles = _roles([_item_parameter(parameter) for parameter in _parameters(function)])
    if roles.payload is None:
        if roles.context is None:
            raise WrongSignature("with `batch` it takes a list of payloads, a list of contexts, or both")
        return lambda _payloads, attempts: function(_contexts(attempts)), decoder_for(bytes)
    decode = _decoder(roles.payload)
    if roles.context is None:
        return lambda payloads, _attempts: function(payloads), decode
    if roles.context_first:
        return lambda payloads, attempts: function(_contexts(attempts), payloads), decode
    return lambda payloads, attempts: function(payloads, _contexts(attempts)), decode


def _contexts(attempts: Sequence[RunningAttempt]) -> list[Context]:
    return [attempt.context for attempt in attempts]


def _item_parameter(parameter: Parameter) -> Parameter:
    """The parameter as if it took one item instead of a list."""
    annotation = parameter.annotation
    if annotation is Parameter.empty or annotation is list:
        return parameter.replace(annotation=Parameter.empty)
    if typing.get_origin(annotation) not in (list, Sequence):
        shown = inspect.formatannotation(annotation)
        raise WrongSignature(f"with `batch` its parameter `{parameter.name}` takes a list: write list[{shown}]")
    [item] = typing.get_args(annotation)
    return parameter.replace(annotation=item)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it returns a coroutine, as a callable object with an `async def __call__` does as well."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _check_callable(function: Callable[..., Any]) -> None:
    if inspect.isclass(function):
        raise WrongSignature("a class cannot be a handler: register a function, or an object that can be called")
    if not callable(function):
        raise WrongSignature("it cannot be called")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise WrongSignature("a generator cannot be a handler, because calling it runs nothing: remove its `yield`")


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    try:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    except Exception as error:  # whatever the evaluation of an annotation raises
        raise WrongSignature(
            f"its annotations cannot be read ({type(error).__name__}: {error}): names used in them must exist when the "
            "handler is registered"
        ) from error
    return [parameter for parameter in parameters if not _is_ignored(parameter)]


def _is_ignored(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY and parameter.default is not Parameter.empty


def _roles(parameters: list[Parameter]) -> _Roles:
    for parameter in parameters:
        if parameter.kind not in _POSITIONAL:
            raise WrongSignature(f"it cannot be given `{parameter}`: a handler takes (payload, context: Context)")
    if parameters and parameters[0].name in ("self", "cls"):
        raise WrongSignature("a method cannot be a handler by itself: register it from an object, as in object.method")
    contexts = [parameter for parameter in parameters if parameter.annotation is Context]
    payloads = [parameter for parameter in parameters if parameter.annotation is not Context]
    if len(contexts) > 1 or len(payloads) > 1:
        names = ", ".join(parameter.name for parameter in parameters)
        raise WrongSignature(
            f"it takes ({names}), but a handler takes at most one payload and one context: annotate the parameter that "
            "takes the context with `Context`"
        )
    payload = payloads[0] if payloads else None
    context = contexts[0] if contexts else None
    if payload is not None and payload.name == "context" and payload.annotation is Parameter.empty:
        raise WrongSignature("its parameter `context` would be given the payload: write `context: Context`")
    return _Roles(payload, context, context_first=context is not None and parameters[0] is context)


def _decoder(payload: Parameter) -> Decode:
    try:
        return decoder_for(payload.annotation)
    except NoDecoder as error:
        raise WrongSignature(str(error)) from error
