"""HTTP/2 as a hostile caller speaks it: frames are written one by one, and nothing is checked before it is sent.

A client library would keep to the server's limits. The frames and the compression of headers come from libraries; what
is sent, how often, and what is left out, is decided by the caller.
"""

import contextlib
import select
import socket
import struct

from hpack import Encoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SERVICE = "clepsydra.v1.SchedulerService"

_INITIAL_WINDOW = 65_535
_FRAME_BYTES = 16_384
_FRAME_HEAD = 9
_SEND_TIMEOUT_S = 2.0


class Refused(Exception):
    """The server has closed the connection, or does not take more of what is sent."""


class StreamEnded(Exception):
    """The server has answered, or reset the stream, before all of it was sent."""


class Connection:
    """One connection. Whatever the server sends is read now and then, so that its own buffers do not fill."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=_SEND_TIMEOUT_S)
        except OSError as error:
            raise Refused(str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_stream = 1
        self._received = bytearray()
        self._window = _INITIAL_WINDOW
        self._stream_window = _INITIAL_WINDOW
        self._windows: dict[int, int] = {}
        self.ended_streams: dict[int, str] = {}
        self.send(PREFACE + SettingsFrame(0).serialize())

    def close(self) -> None:
        self._socket.close()

    def next_stream(self) -> int:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._windows[stream] = self._stream_window
        return stream

    def send(self, raw: bytes) -> None:
        try:
            self._socket.sendall(raw)
        except OSError as error:
            raise Refused(str(error)) from error

    def send_data(self, stream: int, content: bytes, *, end: bool = False, timeout_s: float = _SEND_TIMEOUT_S) -> None:
        """Send within the windows that the server has granted; raises Refused if it grants no more."""
        place = 0
        while place < len(content):
            if stream in self.ended_streams:
                raise StreamEnded
            room = min(self._window, self._windows[stream], _FRAME_BYTES)
            if room <= 0:
                if not self.receive(timeout_s):
                    raise Refused("the server grants no more room for this stream")
                continue
            part = content[place : place + room]
            place += len(part)
            flags = ["END_STREAM"] if end and place == len(content) else []
            self.send(DataFrame(stream, part, flags=flags).serialize())
            self._window -= len(part)
            self._windows[stream] -= len(part)
            self.receive(0)

    def receive(self, timeout_s: float) -> bool:
        """Handle what the server has sent. False if nothing came in time."""
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        if not ready:
            return False
        try:
            part = self._socket.recv(1 << 20)
        except OSError as error:
            raise Refused(str(error)) from error
        if not part:
            raise Refused("the server has closed the connection")
        self._received += part
        while len(self._received) >= _FRAME_HEAD:
            frame, size = Frame.parse_frame_header(memoryview(self._received)[:_FRAME_HEAD])
            if len(self._received) < _FRAME_HEAD + size:
                break
            frame.parse_body(memoryview(bytes(self._received[_FRAME_HEAD : _FRAME_HEAD + size])))
            del self._received[: _FRAME_HEAD + size]
            self._handle(frame)
        return True

    def _handle(self, frame: Frame) -> None:
        if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            granted = frame.settings.get(SettingsFrame.INITIAL_WINDOW_SIZE)
            if granted is not None:
                for stream in self._windows:
                    self._windows[stream] += granted - self._stream_window
                self._stream_window = granted
            self.send(SettingsFrame(0, flags=["ACK"]).serialize())
        elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
            self.send(PingFrame(0, frame.opaque_data, flags=["ACK"]).serialize())
        elif isinstance(frame, WindowUpdateFrame):
            if frame.stream_id == 0:
                self._window += frame.window_increment
            elif frame.stream_id in self._windows:
                self._windows[frame.stream_id] += frame.window_increment
        elif isinstance(frame, RstStreamFrame) or "END_STREAM" in frame.flags:
            self.ended_streams[frame.stream_id] = type(frame).__name__
            self._windows.pop(frame.stream_id, None)
        elif isinstance(frame, GoAwayFrame):
            raise Refused(f"the server says goodbye: {frame.additional_data!r}")

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(OSError):
            self.close()


def call_head(method: str, *more: tuple[str, str]) -> bytes:
    """The headers of a call, compressed without reference to those before: they can be sent on any connection."""
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", f"/{SERVICE}/{method}"),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        *more,
    ]
    return Encoder().encode([(name, value, True) for name, value in headers], huffman=False)


def headers_frame(stream: int, head: bytes) -> bytes:
    return HeadersFrame(stream, head, flags=["END_HEADERS"]).serialize()


def reset_frame(stream: int) -> bytes:
    return RstStreamFrame(stream, error_code=8).serialize()


def message_head(size: int, *, compressed: bool = False) -> bytes:
    """What gRPC writes before each message."""
    return struct.pack(">BI", compressed, size)
