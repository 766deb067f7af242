"""A Python function that workers have registered under a name."""

from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.validation.rules import both, cached, length, message, text
from clepsydra.v1.action_pb2 import PythonHandler

HANDLER_NAME_LENGTH = 255
HANDLER_NAME_PATTERN = r"[0-9A-Za-z_][0-9A-Za-z_.:/-]*"
CONTENT_TYPE_LENGTH = 255

NAME = cached(
    both(
        length(HANDLER_NAME_LENGTH, "characters"),
        text(HANDLER_NAME_PATTERN, "letters, digits, '_', '.', ':', '/' and '-'"),
    )
)
CONTENT_TYPE = cached(
    both(
        length(CONTENT_TYPE_LENGTH, "characters"),
        text(r"[!-.0-~]+/[!-:<-~]+(?: *;[\x20-\x7e]*)?", "a media type such as application/json"),
    )
)

RULE = message(
    PythonHandler,
    {"name": NAME, "payload": length(PAYLOAD_BYTES, "bytes"), "content_type": CONTENT_TYPE},
    required=["name"],
)


def fill_in(_handler: PythonHandler) -> None:
    """Nothing has a default."""


def describe(handler: PythonHandler) -> str:
    return f"handler {handler.name}"
