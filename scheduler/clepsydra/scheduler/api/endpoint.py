"""The gRPC edge: bytes in, bytes out, and every error as a status that names what is wrong.

Messages are received and parsed here and not by gRPC, which holds unfinished ones without a limit and answers
unreadable bytes with UNKNOWN. To gRPC every method takes a stream of requests, of which one is read: on the wire that
is the same. Calls under way are counted here, by number and by size, so that health checks are still answered when
there are too many.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog
from google.protobuf.message import Message
from grpc_status import rpc_status

from clepsydra.scheduler.api.grpc_status import status_of
from clepsydra.scheduler.api.parsing import SMALL_BYTES, parse, parse_large
from clepsydra.scheduler.api.reception import Reception
from clepsydra.scheduler.errors import OutcomeUnknown, Overloaded, SchedulerError
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.v1 import scheduler_pb2

SERVICE = scheduler_pb2.DESCRIPTOR.services_by_name["SchedulerService"]

_log = structlog.get_logger(__name__)

Method = Callable[[Any, float | None], Awaitable[bytes]]
Handler = Callable[[Any, Any], Awaitable[bytes]]


class Endpoint:
    """The methods of the service, as gRPC calls them."""

    def __init__(self, scheduler: Scheduler, settings: SchedulerSettings, reception: Reception) -> None:
        self._reception = reception
        self._calls_max = settings.max_concurrent_calls
        self._bytes_max = settings.pending_bytes
        self._calls = 0
        self._bytes = 0
        self._methods: dict[str, Method] = {
            "CreateAction": scheduler.create_encoded,
            "GetAction": _encoding(scheduler.get),
            "ListActions": _encoding(scheduler.list_actions),
            "UpdateAction": _encoding(scheduler.update),
            "DeleteAction": _encoding(scheduler.delete),
            "BatchCreateActions": scheduler.batch_create_encoded,
            "BatchDeleteActions": _encoding(scheduler.batch_delete),
            "ImportActions": _encoding(scheduler.import_actions),
            "PauseAction": _encoding(scheduler.pause),
            "ResumeAction": _encoding(scheduler.resume),
            "RunAction": _encoding(scheduler.run),
            "CancelAction": _encoding(scheduler.cancel),
            "ExplainAction": _encoding(scheduler.explain),
        }

    def handlers(self) -> "grpc.GenericRpcHandler[bytes, bytes]":
        return grpc.method_handlers_generic_handler(
            SERVICE.full_name,
            {name: grpc.stream_unary_rpc_method_handler(self._handler(name)) for name in SERVICE.methods_by_name},
        )

    def _handler(self, name: str) -> Handler:
        method = self._methods[name]
        request_type = getattr(scheduler_pb2, SERVICE.methods_by_name[name].input_type.name)

        async def carry_out(raw: bytes, context: Any) -> bytes:
            size = len(raw)
            self._calls += 1
            self._bytes += size
            try:
                self._check_room()
                request = parse(request_type, raw) if size <= SMALL_BYTES else await parse_large(request_type, raw)
                return await method(request, context.time_remaining())
            finally:
                self._calls -= 1
                self._bytes -= size

        async def handle(_requests: Any, context: Any) -> bytes:
            try:
                return await carry_out(await self._reception.receive(context), context)
            except SchedulerError as error:
                status = status_of(error)
                # A frame of its traceback may hold the error: such a cycle would keep this call, and its place in the
                # connection, until the garbage is collected.
                error.__traceback__ = None
            except Exception:
                # In this API, UNAVAILABLE says that a call may have taken effect; a defect may occur after the write.
                # INTERNAL would say no more, and would keep clients from trying again.
                _log.exception("a call failed by a defect of the scheduler", method=name)
                status = status_of(OutcomeUnknown("the scheduler failed, and its log says how; repeat the call"))
            # Not `abort`, which keeps its exception in the call: a cycle as well.
            end = rpc_status.to_status(status)
            context.set_code(end.code)
            context.set_details(end.details)
            context.set_trailing_metadata(end.trailing_metadata)
            return b""

        return handle

    def _check_room(self) -> None:
        if self._calls > self._calls_max or self._bytes > self._bytes_max:
            raise Overloaded("the scheduler has too many calls under way already: try again a little later")


def _encoding(method: Callable[[Any, float | None], Awaitable[Message]]) -> Method:
    async def call(request: Any, remaining_s: float | None) -> bytes:
        return (await method(request, remaining_s)).SerializeToString()

    return call
