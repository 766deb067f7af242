"""Executes a Python handler for one action."""

from clepsydra.v1.action_pb2 import PythonHandler
from clepsydra.worker.context import Told
from clepsydra.worker.handling import Handler, Registry
from clepsydra.worker.result import SUCCESS, Result, failure
from clepsydra.worker.targets.functions import Functions


class HandlerTarget:
    def __init__(self, registry: Registry, functions: Functions) -> None:
        self._registry = registry
        self._functions = functions

    async def execute(self, request: PythonHandler, told: Told) -> Result:
        handler = self._registry.get(request.name)
        if not isinstance(handler, Handler):
            # Another worker may have it: during a deployment, some do and some do not.
            worker = told.context.worker
            return failure(
                f'no handler named "{request.name}" is registered on worker {worker}: start its workers with '
                "--handlers and the module that registers it"
            )
        if handler.is_async:
            try:
                await handler.call(request.payload, request.content_type, told)
            except BaseException as error:  # whatever users' code may raise
                return self._functions.ended_by(error, handler, (told,))
            return SUCCESS
        call, payload, content_type = handler.call, request.payload, request.content_type
        result, _ = await self._functions.call_in_thread(handler, lambda: call(payload, content_type, told), (told,))
        return result
