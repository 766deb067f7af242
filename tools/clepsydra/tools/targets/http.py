"""Flags of an HTTP request."""

from clepsydra.tools.fields.flag import SpecFlag
from clepsydra.tools.fields.types import CONTENT, NAME, FieldType, Parsed, pair_parser
from clepsydra.v1.action_pb2 import HttpHeader

# Only the names are shown: values may be secret. `get --json` prints them.
_HEADERS = FieldType(
    Parsed("name: value", pair_parser(":", "Content-Type: application/json")),
    show=lambda headers: ", ".join(header.name for header in headers),
    write=lambda message, name, pairs: getattr(message, name).extend(HttpHeader(name=n, value=v) for n, v in pairs),
    is_repeated=True,
)

FLAGS = (
    SpecFlag(
        "--http",
        "spec.http.url",
        NAME,
        "Send a request to this URL.",
        metavar="URL",
        one_of="target",
        has_own_line=False,
    ),
    SpecFlag(
        "--method",
        "spec.http.method",
        NAME,
        "The HTTP method. [default: POST with a body, GET without]",
        metavar="METHOD",
        needs="--http",
        has_own_line=False,
    ),
    SpecFlag("--header", "spec.http.headers", _HEADERS, "A header; may be repeated.", needs="--http", label="headers"),
    SpecFlag("--body", "spec.http.body", CONTENT, "The body.", needs="--http"),
)
