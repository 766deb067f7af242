"""The clients of a run: they call schedulers, repeat what got lost, and hold everybody to what they were told."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from google.protobuf.message import Message
from google.rpc.code_pb2 import Code

from clepsydra.core.times import duration, seconds
from clepsydra.scheduler import errors
from clepsydra.scheduler.service import Scheduler
from clepsydra.v1.action_pb2 import Periodic, PythonHandler, RetryPolicy, Schedule, Spec
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchDeleteActionsRequest,
    CancelActionRequest,
    CreateActionRequest,
    DeleteActionRequest,
    GetActionRequest,
    ListActionsRequest,
    ListActionsResponse,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)
from tests.simulation.faults import FLOODS
from tests.simulation.handlers import ANOTHER_HANDLER, HANDLER, action_id_of
from tests.simulation.history import History
from tests.simulation.nodes import SchedulerNode
from tests.simulation.plan import CallPlan, ClientPlan, SpecPlan
from tests.simulation.promises import Promises
from tests.simulation.verdict import Verdict
from tests.simulation.weather import Weather

_TRIES = 8
_TIMEOUT_S = 3.0
_PAUSE_S = 0.3

# The scheduler says that this try did nothing, and that another may do better.
_NOT_NOW = (errors.Overloaded, errors.DeadlinePassed, errors.StoreUnavailable)


class Unanswered(Exception):
    """Nobody can tell whether the call took effect."""


class Client:
    def __init__(
        self,
        number: int,
        plan: ClientPlan,
        actions: int,
        nodes: Sequence[SchedulerNode],
        seed: int,
        history: History,
        weather: Weather,
        verdict: Verdict,
        promises: Promises,
    ) -> None:
        self._name = f"client-{number}"
        self._plan = plan
        self._actions = actions
        self._nodes = nodes
        self._random = random.Random(f"client {seed} {number}")
        self._history = history
        self._weather = weather
        self._verdict = verdict
        self._promises = promises
        self._calls: list[asyncio.Task[None]] = []
        self._forgiven: set[str] = set()

    async def run(self) -> None:
        if self._plan.floods:
            self._weather.mark(FLOODS)
        for number, call in enumerate(self._plan.calls):
            await asyncio.sleep(seconds(call.pause_us))
            self._calls.append(asyncio.ensure_future(self._carry_out(f"{self._name}-{number}", call)))
            if not self._plan.floods:
                await self._calls[-1]
        await asyncio.gather(*self._calls)

    async def _carry_out(self, request_id: str, call: CallPlan) -> None:
        calls = {"get": self._get, "list": self._list, "batch": self._batch, "unbatch": self._unbatch}
        carry_out = calls.get(call.kind, self._change)
        was_told = await carry_out(call, request_id if call.has_request_id else "")
        if was_told and call.replayed_after_us is not None and call.has_request_id:
            await asyncio.sleep(seconds(call.replayed_after_us))
            self._weather.mark("a request was replayed")
            # By now the action may be another, or gone, and have forgotten this request.
            self._forgiven.add(request_id)
            await carry_out(call, request_id)

    async def _change(self, call: CallPlan, request_id: str) -> bool:
        action_id = action_id_of(call.action)
        window = self._promises.window(action_id)
        call = call._replace(kind=_kind_of(call))
        request = _request(call, request_id)
        self._promises.asks(call.kind, request_id)
        if call.kind == "cancel":
            await self._name_occurrence(request)
        answer = await self._until_told(
            call.kind, request_id, lambda scheduler: _METHODS[call.kind](scheduler, request, _TIMEOUT_S)
        )
        if answer is None:
            return False
        if call.kind == "delete":
            self._promises.deleted(window, request_id)
        elif call.kind == "cancel":
            self._promises.cancelled(window, answer.action, request_id)
        else:
            self._promises.changed(call.kind, window, answer, request_id)
            self._promises.updated(call.kind, window, answer)
        if call.kind in ("create", "update") and request_id not in self._forgiven:
            self._promises.delayed(window, call.spec.delay_us, answer)
        return True

    async def _name_occurrence(self, request: CancelActionRequest) -> None:
        """Look first, as a user does; the call may then end that occurrence and no other."""
        request_id, occurrences = request.request_id, self._promises.occurrences
        if request_id in occurrences:
            request.occurrence_time.CopyFrom(occurrences[request_id])
            return
        try:
            answer = await self._ask(lambda scheduler: scheduler.get(GetActionRequest(id=request.id)))
        except (Unanswered, errors.SchedulerError):
            return
        request.occurrence_time.CopyFrom(answer.status.occurrence_time)
        if request_id:
            occurrences[request_id] = answer.status.occurrence_time

    async def _get(self, call: CallPlan, request_id: str) -> bool:
        window = self._promises.window(action_id_of(call.action))
        request = GetActionRequest(id=window.action_id)
        try:
            answer = await self._ask(lambda scheduler: scheduler.get(request))
        except errors.NotFound:
            self._promises.read(window, None)
        except (Unanswered, errors.StoreUnavailable):
            return False
        else:
            self._promises.read(window, answer.meta.guid)
        return False

    async def _list(self, call: CallPlan, request_id: str) -> bool:
        windows = [self._promises.window(action_id_of(number)) for number in range(self._actions)]
        listed: dict[str, str] = {}
        token = ""
        while True:
            try:
                page = await self._page(token)
            except (Unanswered, errors.StoreUnavailable):
                return False
            for action in page.actions:
                if action.meta.id in listed:
                    self._verdict.violated("a listing shows each action once", action.meta.id)
                listed[action.meta.id] = action.meta.guid
            token = page.next_page_token
            if not token:
                break
        self._promises.listed(windows, listed)
        return False

    async def _page(self, token: str) -> ListActionsResponse:
        request = ListActionsRequest(page_size=2, page_token=token)
        page: ListActionsResponse = await self._ask(lambda scheduler: scheduler.list_actions(request))
        return page

    async def _batch(self, call: CallPlan, request_id: str) -> bool:
        numbers = sorted({call.action, (call.action + 1) % self._actions})
        calls = [call._replace(kind="create", action=number) for number in numbers]
        ids = [f"{request_id}-{number}" if request_id else "" for number in numbers]
        windows = [self._promises.window(action_id_of(number)) for number in numbers]
        request = BatchCreateActionsRequest(
            requests=[_request(each, each_id) for each, each_id in zip(calls, ids, strict=True)]
        )
        answer = await self._until_told("batch", request_id, lambda scheduler: scheduler.batch_create(request))
        for window, each_id, result in zip(windows, ids, answer.results if answer is not None else (), strict=False):
            if result.HasField("action"):
                self._promises.changed("create", window, result.action, each_id)
            else:
                self._check_code(result.error.code)
        return answer is not None

    async def _unbatch(self, call: CallPlan, request_id: str) -> bool:
        numbers = sorted({call.action, (call.action + 1) % self._actions})
        ids = [f"{request_id}-{number}" if request_id else "" for number in numbers]
        windows = [self._promises.window(action_id_of(number)) for number in numbers]
        request = BatchDeleteActionsRequest(
            requests=[
                DeleteActionRequest(id=window.action_id, request_id=each_id)
                for window, each_id in zip(windows, ids, strict=True)
            ]
        )
        answer = await self._until_told("unbatch", request_id, lambda scheduler: scheduler.batch_delete(request))
        for window, each_id, result in zip(windows, ids, answer.results if answer is not None else (), strict=False):
            if result.HasField("deleted"):
                self._promises.deleted(window, each_id)
            else:
                self._check_code(result.error.code)
        return answer is not None

    def _check_code(self, code: int) -> None:
        if code in (Code.UNKNOWN, Code.INTERNAL, Code.OK):
            self._verdict.violated("errors are documented ones", Code.Name(code))

    async def _until_told(self, kind: str, request_id: str, call: Callable[[Scheduler], Awaitable[Any]]) -> Any:
        """Repeat a call until its outcome is known. None: it was refused, or nobody could tell."""
        unknown = False
        for _ in range(_TRIES):
            try:
                answer = await self._ask(call)
            except Unanswered:
                unknown = True
            except _NOT_NOW:
                pass
            except errors.SchedulerError as error:
                self._history.note(self._name, kind, request_id, "refused", type(error).__name__)
                if not unknown and request_id and request_id not in self._forgiven:
                    self._promises.refused(request_id)
                return None
            else:
                self._history.note(self._name, kind, request_id, "acknowledged")
                return answer
            await asyncio.sleep(_PAUSE_S)
        self._weather.mark("a client did not learn the outcome")
        return None

    async def _ask(self, call: Callable[[Scheduler], Awaitable[Any]]) -> Any:
        """One try, at any scheduler that listens."""
        serving = self._random.choice(self._nodes).serve(call)
        if serving is None:
            raise errors.StoreUnavailable("nobody listens")
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                result = await serving.answer
        except TimeoutError as error:
            # gRPC tells the server that nobody waits any more.
            serving.task.cancel()
            raise Unanswered from error
        if isinstance(result, errors.OutcomeUnknown | ConnectionError):
            raise Unanswered
        if isinstance(result, errors.SchedulerError):
            raise result
        if isinstance(result, Exception):
            self._verdict.violated("errors are documented ones", repr(result))
            raise Unanswered
        return result


def _request(call: CallPlan, request_id: str) -> Any:
    action_id = action_id_of(call.action)
    if call.kind in _BY_ID:
        return _BY_ID[call.kind](id=action_id, request_id=request_id)
    request: CreateActionRequest | UpdateActionRequest
    if call.kind == "create":
        request = CreateActionRequest(request_id=request_id)
    else:
        request = UpdateActionRequest(request_id=request_id, allow_missing=call.action % 2 == 0)
    request.action.meta.id = action_id
    request.action.spec.CopyFrom(_spec(call.spec))
    if isinstance(request, UpdateActionRequest):
        request.update_mask.paths.extend(_PATHS[call.kind])
        if call.kind == "label":
            request.action.meta.labels["changed"] = request_id
        elif call.kind == "retarget":
            request.action.spec.handler.name = ANOTHER_HANDLER
    return request


def _kind_of(call: CallPlan) -> str:
    """An update changes the schedule and all the rest, the target alone, or neither."""
    return ("update", "retarget", "settings")[call.spec.retry_us % 3] if call.kind == "update" else call.kind


_PATHS: dict[str, list[str]] = {
    "update": [],
    "label": ["meta.labels"],
    "retarget": ["spec.handler"],
    "settings": ["spec.retry", "spec.retention", "spec.attempt_timeout", "spec.interruption_limit"],
}


_BY_ID: dict[str, Callable[..., Message]] = {
    "delete": DeleteActionRequest,
    "pause": PauseActionRequest,
    "resume": ResumeActionRequest,
    "run": RunActionRequest,
    "cancel": CancelActionRequest,
}

_METHODS: dict[str, Callable[[Scheduler, Any, float | None], Awaitable[Any]]] = {
    "create": Scheduler.create,
    "update": Scheduler.update,
    "label": Scheduler.update,
    "retarget": Scheduler.update,
    "settings": Scheduler.update,
    "delete": Scheduler.delete,
    "pause": Scheduler.pause,
    "resume": Scheduler.resume,
    "run": Scheduler.run,
    "cancel": Scheduler.cancel,
}


def _spec(plan: SpecPlan) -> Spec:
    if plan.is_common:
        return Spec(schedule=Schedule(delay=duration(plan.delay_us)), handler=PythonHandler(name=HANDLER))
    spec = Spec(
        schedule=Schedule(delay=duration(plan.delay_us)),
        retry=RetryPolicy(first_delay=duration(plan.retry_us), multiplier=1.0, max_attempts=plan.max_attempts),
        attempt_timeout=duration(plan.timeout_us),
        interruption_limit=plan.interruption_limit,
        handler=PythonHandler(name=HANDLER),
    )
    spec.retention.after_success.CopyFrom(duration(plan.kept_after_success_us))
    spec.retention.after_failure.CopyFrom(duration(plan.kept_after_failure_us))
    if plan.start_deadline_us:
        spec.start_deadline.CopyFrom(duration(max(1000, plan.start_deadline_us)))
    if plan.interval_us:
        mode = Periodic.DRIFT if plan.drift else Periodic.FIXED_RATE
        periodic = Periodic(interval=duration(plan.interval_us), mode=mode, max_runs=plan.max_runs)
        spec.schedule.periodic.CopyFrom(periodic)
    return spec
