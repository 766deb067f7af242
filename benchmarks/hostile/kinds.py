"""What hostile callers do: one function for each kind, which goes on until its time is over.

A caller that is cut off connects again. Everything is limited in number: the attacking process itself stays small.
"""

import contextlib
import itertools
import struct
import time
import zlib
from collections.abc import Callable

from benchmarks.hostile.wire import (
    Connection,
    Refused,
    StreamEnded,
    call_head,
    headers_frame,
    message_head,
    reset_frame,
)
from clepsydra.core.limits import REQUEST_BYTES
from clepsydra.v1.action_pb2 import Meta, ScheduledAction
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

MIB = 2**20

Until = Callable[[], bool]
Kind = Callable[[str, Until], None]

# After a refusal, so that a refused caller does not spend its time on refusals alone.
_PAUSE_S = 0.01


def resets(address: str, over: Until) -> None:
    """Calls that are reset in the same breath, as many as the connection takes."""
    head = headers_frame(1, call_head("CreateAction"))
    reset = reset_frame(1)

    def flood(connection: Connection) -> None:
        while not over():
            streams = [struct.pack(">I", connection.next_stream()) for _ in range(500)]
            connection.send(b"".join(head[:5] + each + head[9:] + reset[:5] + each + reset[9:] for each in streams))
            connection.receive(0)

    _on_connections(address, over, flood)


def headers_only(address: str, over: Until) -> None:
    """60,000 calls of which nothing but the headers comes, on 60 connections, held for as long as possible."""
    head = headers_frame(1, call_head("CreateAction"))
    opened: list[Connection] = []
    while not over():
        with contextlib.suppress(Refused):
            while len(opened) < 60:
                opened.append(Connection(address))
                streams = [struct.pack(">I", opened[-1].next_stream()) for _ in range(1_000)]
                opened[-1].send(b"".join(head[:5] + each + head[9:] for each in streams))
        for connection in list(opened):
            try:
                connection.receive(0)
            except Refused:
                opened.remove(connection)
                connection.close()
        time.sleep(_PAUSE_S)


def half_messages(address: str, over: Until) -> None:
    """240 messages of the largest size, of which all but the last byte comes, on connections with 80 each."""
    part = bytes(MIB)
    with contextlib.ExitStack() as stack:
        while not over():
            open_connections = []
            for _ in range(3):
                with contextlib.suppress(Refused):
                    open_connections.append(stack.enter_context(Connection(address)))
            for connection in open_connections:
                with contextlib.suppress(Refused):
                    _half_send(connection, part, over)
            # Hold what is open for as long as the server does.
            held_until = time.monotonic() + 10
            while not over() and time.monotonic() < held_until:
                for connection in list(open_connections):
                    try:
                        connection.receive(_PAUSE_S)
                    except Refused:
                        open_connections.remove(connection)
                time.sleep(_PAUSE_S)
            stack.close()


def _half_send(connection: Connection, part: bytes, over: Until) -> None:
    head = call_head("BatchCreateActions")
    streams = [connection.next_stream() for _ in range(80)]
    for stream in streams:
        connection.send(headers_frame(stream, head))
        connection.send_data(stream, message_head(REQUEST_BYTES))
    for _ in range(REQUEST_BYTES // len(part) - 1):
        for stream in streams:
            if over():
                return
            with contextlib.suppress(Refused):
                connection.send_data(stream, part, timeout_s=0.05)


def gzip_bombs(address: str, over: Until) -> None:
    """Messages of 1.5 MiB that decompress to 1.5 GiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(1536)) + packer.flush()
    _whole_messages(address, over, ("CreateAction", bomb), compressed=True)


def labels(address: str, over: Until) -> None:
    """1.1 million labels in one action, by itself and inside a batch."""
    create = _labelled(1_100_000)
    _whole_messages(address, over, ("CreateAction", create), ("BatchCreateActions", _field(1, create)))


def unknown_fields(address: str, over: Until) -> None:
    """Five million fields that no version of the API knows, by themselves and inside a batch."""
    fields = b"\xf8\x3e\x01" * 5_000_000
    _whole_messages(address, over, ("CreateAction", fields), ("BatchCreateActions", _field(1, fields)))


def largest_calls(address: str, over: Until) -> None:
    """As many labels, and as many unknown fields, as fit into the largest single call and the largest batch."""
    create, fields = _labelled(100_000), b"\xf8\x3e\x01" * 340_000
    batch = _field(1, create) * 15
    _whole_messages(address, over, ("CreateAction", create), ("CreateAction", fields), ("BatchCreateActions", batch))


def connections(address: str, over: Until) -> None:
    """Connections by the thousand, most of which never say a word."""
    with contextlib.ExitStack() as stack:
        opened = 0
        while not over():
            try:
                stack.enter_context(Connection(address))
                opened += 1
            except Refused:
                time.sleep(_PAUSE_S)
            if opened % 4000 == 0:
                stack.close()


def _whole_messages(address: str, over: Until, *calls: tuple[str, bytes], compressed: bool = False) -> None:
    """Complete calls, one after the other on each connection."""
    heads = {method: call_head(method, *([("grpc-encoding", "gzip")] if compressed else [])) for method, _ in calls}
    turns = itertools.cycle(calls)

    def call_again(connection: Connection) -> None:
        while not over():
            method, content = next(turns)
            stream = connection.next_stream()
            connection.send(headers_frame(stream, heads[method]))
            with contextlib.suppress(StreamEnded):
                connection.send_data(stream, message_head(len(content), compressed=compressed) + content, end=True)
            while stream not in connection.ended_streams and not over():
                connection.receive(0.1)

    _on_connections(address, over, call_again)


def _on_connections(address: str, over: Until, use: Callable[[Connection], None]) -> None:
    """Use a connection, and a new one whenever the last one was refused."""
    while not over():
        try:
            with Connection(address) as connection:
                use(connection)
        except Refused:
            time.sleep(_PAUSE_S)


def _labelled(count: int) -> bytes:
    """A creation with labels that have a key each and no value."""
    entries = b"".join(_field(Meta.LABELS_FIELD_NUMBER, _field(1, b"%x" % number)) for number in range(count))
    action = _field(ScheduledAction.META_FIELD_NUMBER, entries)
    return _field(CreateActionRequest.ACTION_FIELD_NUMBER, action)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*written, value))


KINDS: dict[str, Kind] = {
    "resets": resets,
    "headers": headers_only,
    "half-messages": half_messages,
    "gzip": gzip_bombs,
    "labels": labels,
    "unknown-fields": unknown_fields,
    "largest-calls": largest_calls,
    "connections": connections,
}
