"""From the bytes of a payload to the type that a handler takes.

`decoder_for` is called once, when the handler is registered, and returns the function that decodes each payload. A
payload that does not fit raises `Undecodable`, because no retry will change its bytes. Anything else that goes wrong (a
validator that needs a database) is an ordinary failure of the handler.
"""

import inspect
from collections.abc import Callable
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

# From the payload and its content type.
Decode = Callable[[bytes, str], Any]

_PROTOBUF_TYPES = frozenset(
    {
        "",
        "application/octet-stream",
        "application/protobuf",
        "application/vnd.google.protobuf",
        "application/x-protobuf",
    }
)
_VALIDATION_ERRORS_SHOWN = 3


class Undecodable(Exception):
    """The payload does not fit what the handler takes."""


class NoDecoder(Exception):
    """No payload can be decoded into this annotation."""


def decoder_for(annotation: Any) -> Decode:
    """The decoder of a payload parameter with this annotation."""
    if annotation is inspect.Parameter.empty or annotation is bytes:
        return _unchanged
    if annotation is str:
        return _text
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return _message_decoder(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _json_decoder(annotation.model_validate_json)
    try:
        return _json_decoder(TypeAdapter(annotation).validate_json)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise NoDecoder(
            f"a payload cannot be decoded into {inspect.formatannotation(annotation)}: annotate it with bytes, str, "
            "a protobuf message, a pydantic model, or a type that pydantic can read from JSON"
        ) from error


def _unchanged(payload: bytes, _content_type: str) -> bytes:
    return payload


def _text(payload: bytes, _content_type: str) -> str:
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Undecodable(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _message_decoder(message_class: type[Message]) -> Decode:
    name = message_class.DESCRIPTOR.full_name

    def decode(payload: bytes, content_type: str) -> Message:
        kind = content_type.partition(";")[0].strip().lower()
        message = message_class()
        try:
            if kind in _PROTOBUF_TYPES:
                message.ParseFromString(payload)
            elif kind == "application/json" or kind.endswith("+json"):
                json_format.Parse(payload, message)
            else:
                raise Undecodable(
                    f"its content type is {content_type}; a {name} is read from application/x-protobuf or "
                    "application/json"
                )
        except (DecodeError, json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            raise Undecodable(f"it is not a {name}: {error}") from error
        return message

    return decode


def _json_decoder(validate_json: Callable[[bytes], Any]) -> Decode:
    def decode(payload: bytes, _content_type: str) -> Any:
        try:
            return validate_json(payload)
        except ValidationError as error:
            raise Undecodable(_validation_text(error)) from error

    return decode


def _validation_text(error: ValidationError) -> str:
    """Where and why, without the values: a payload may hold secrets, and many people can read a status."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" if detail["loc"] else detail["msg"]
        for detail in details[:_VALIDATION_ERRORS_SHOWN]
    ]
    if len(details) > len(shown):
        shown.append(f"and {len(details) - len(shown)} more")
    return f"it does not fit {error.title}: {'; '.join(shown)}"
