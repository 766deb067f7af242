"""How a handler is to be called, read from its signature once, when it is registered.

A handler takes a payload, a context, both or nothing. The parameter annotated with `Context` gets the context, the
other one the payload. Keyword-only parameters with defaults are left alone, so that a `functools.partial` can bring
its own arguments. A handler that takes many at once takes `list[...]` of either.
"""

import inspect
import typing
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, NamedTuple

from clepsydra.worker.context import Context, Told
from clepsydra.worker.payloads import Decode, NoDecoder, decoder_for

# From the payload, its content type and the context, if it is asked for, to what the handler returns: a coroutine, if
# it is one.
Call = Callable[[bytes, str, Told], Any]
# The same for many: from their payloads, decoded, and their contexts.
CallMany = Callable[[list[Any], Sequence[Told]], Any]

_POSITIONAL = frozenset({Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD})


class WrongSignature(Exception):
    """Why a function cannot be a handler, and how it could be one."""


class _Roles(NamedTuple):
    payload: Parameter | None
    context: Parameter | None
    context_first: bool


def call_of(function: Callable[..., Any]) -> Call:
    """The one form in which every handler is called, whatever its own form is."""
    _refuse_what_would_not_run(function)
    roles = _roles(_parameters(function))
    if roles.payload is None:
        if roles.context is None:
            return lambda _payload, _content_type, _told: function()
        return lambda _payload, _content_type, told: function(told.context)
    decode = _decoder(roles.payload)
    if roles.context is None:
        return lambda payload, content_type, _told: function(decode(payload, content_type))
    if roles.context_first:
        return lambda payload, content_type, told: function(told.context, decode(payload, content_type))
    return lambda payload, content_type, told: function(decode(payload, content_type), told.context)


def call_many_of(function: Callable[..., Any]) -> tuple[CallMany, Decode]:
    """The one form in which every handler of many is called, and what decodes each of its payloads."""
    _refuse_what_would_not_run(function)
    roles = _roles([_of_one(parameter) for parameter in _parameters(function)])
    if roles.payload is None:
        if roles.context is None:
            raise WrongSignature("with `batch` it takes a list of payloads, a list of contexts, or both")
        return lambda _payloads, told: function(_contexts(told)), decoder_for(bytes)
    decode = _decoder(roles.payload)
    if roles.context is None:
        return lambda payloads, _told: function(payloads), decode
    if roles.context_first:
        return lambda payloads, told: function(_contexts(told), payloads), decode
    return lambda payloads, told: function(payloads, _contexts(told)), decode


def _contexts(told: Sequence[Told]) -> list[Context]:
    return [each.context for each in told]


def _of_one(parameter: Parameter) -> Parameter:
    """What a parameter that takes a list would be if it took one of its items."""
    annotation = parameter.annotation
    if annotation is Parameter.empty or annotation is list:
        return parameter.replace(annotation=Parameter.empty)
    if typing.get_origin(annotation) not in (list, Sequence):
        shown = inspect.formatannotation(annotation)
        raise WrongSignature(f"with `batch` its parameter `{parameter.name}` takes a list: write list[{shown}]")
    [item] = typing.get_args(annotation)
    return parameter.replace(annotation=item)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine; callable objects with an `async def __call__` count."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _refuse_what_would_not_run(function: Callable[..., Any]) -> None:
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
    return [parameter for parameter in parameters if not _is_left_alone(parameter)]


def _is_left_alone(parameter: Parameter) -> bool:
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
