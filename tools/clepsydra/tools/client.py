"""Calls to a scheduler.

A refusal becomes a `Failure` with the scheduler's message. A call that reached no scheduler becomes one with advice.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.scheduler_pb2 import ItemError
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub

_EXIT_OF_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: Exit.USAGE,
    grpc.StatusCode.OUT_OF_RANGE: Exit.USAGE,
    grpc.StatusCode.NOT_FOUND: Exit.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS: Exit.REFUSED,
    grpc.StatusCode.ABORTED: Exit.REFUSED,
    grpc.StatusCode.FAILED_PRECONDITION: Exit.REFUSED,
}
_EXIT_OF_CODE = {code.value[0]: exit_code for code, exit_code in _EXIT_OF_STATUS.items()}

# HTTP proxies are for web sites; a scheduler is usually in the same network, where a proxy does not reach it.
_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]


class Client:
    def __init__(self, stub: Any, settings: Settings) -> None:
        self._stub = stub
        self._server = settings.server
        self._timeout_s = settings.call_timeout_ms / 1000

    def call(self, method: str, request: Any) -> Any:
        """Call a method of the service once. Raises Failure."""
        try:
            return getattr(self._stub, method)(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise self._failure(error) from error

    def start(self, method: str, request: Any) -> Callable[[], Any]:
        """Begin a call. Returns a function that waits for the response, and raises Failure."""
        future = getattr(self._stub, method).future(request, timeout=self._timeout_s)

        def finish() -> Any:
            try:
                return future.result()
            except grpc.RpcError as error:
                raise self._failure(error) from error

        return finish

    def _failure(self, error: Any) -> Failure:
        status = rpc_status.from_call(error)
        if status is not None:
            return failure_from_status(status)
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return Failure(
                f"the scheduler at {self._server} did not answer within {self._timeout_s:g} s: the call may have taken "
                "effect; with --request-id it is safe to repeat",
                Exit.UNAVAILABLE,
            )
        if code is grpc.StatusCode.UNAVAILABLE:
            return Failure(
                f"no scheduler answers at {self._server}: start one with `clepsydra up`, or name another with --server "
                f"({details})",
                Exit.UNAVAILABLE,
            )
        return Failure(
            f"the server at {self._server} is not a scheduler, or fails: {code.name}, {details}", Exit.UNAVAILABLE
        )


@contextmanager
def scheduler_client(settings: Settings) -> Iterator[Client]:
    """A client of the scheduler in the settings."""
    with _channel(settings) as channel:
        yield Client(SchedulerServiceStub(channel), settings)  # type: ignore[no-untyped-call]


def failure_from_status(status: status_pb2.Status) -> Failure:
    """A refusal of a call."""
    violations: list[Any] = []
    for detail in status.details:
        request = error_details_pb2.BadRequest()
        if detail.Unpack(request):
            violations += request.field_violations
    return _failure(status.code, status.message, violations)


def failure_from_item(error: ItemError, path_prefix: str) -> Failure:
    """A refusal of one item of a batch. Paths of fields are given without the prefix."""
    return _failure(error.code, error.message, error.field_violations, path_prefix)


def _failure(code: int, message: str, violations: Sequence[Any], path_prefix: str = "") -> Failure:
    """The scheduler's message, and below it one line for each field if more than one is wrong."""
    lines = [message.removeprefix(path_prefix)]
    if len(violations) > 1:
        lines += [f"  {each.field.removeprefix(path_prefix)}: {each.description}" for each in violations]
    return Failure("\n".join(lines), _EXIT_OF_CODE.get(code, Exit.UNAVAILABLE))


def _channel(settings: Settings) -> grpc.Channel:
    if not settings.server_tls:
        return grpc.insecure_channel(settings.server, options=_OPTIONS)
    try:
        roots = settings.server_ca_file.read_bytes() if settings.server_ca_file else None
    except OSError as error:
        raise Failure(f"server_ca_file ({error.filename}) cannot be read: {error.strerror}", Exit.USAGE) from error
    return grpc.secure_channel(settings.server, grpc.ssl_channel_credentials(roots), options=_OPTIONS)
