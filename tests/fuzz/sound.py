"""Requests that make sense: what the fuzzing starts from, so that it gets past the first check."""

import random
from collections.abc import Callable, Mapping
from typing import TypeVar

from google.protobuf.message import Message

from clepsydra.core.times import DAY_US, MINUTE_US, SECOND_US, duration, timestamp
from clepsydra.v1 import scheduler_pb2
from clepsydra.v1.action_pb2 import (
    HttpHeader,
    HttpRequest,
    LogLine,
    Meta,
    Periodic,
    PythonHandler,
    Retention,
    RetryPolicy,
    Schedule,
    ScheduledAction,
    Spec,
    Status,
)
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchDeleteActionsRequest,
    CreateActionRequest,
    DeleteActionRequest,
    ExplainActionRequest,
    GetActionRequest,
    ImportActionRequest,
    ImportActionsRequest,
    ListActionsRequest,
    UpdateActionRequest,
)

Request = TypeVar("Request", bound=Message)

# Few enough that calls meet the actions of other calls, in every state.
IDS = [f"action-{n}" for n in range(40)]
_PATHS = ["spec", "spec.retry", "spec.retry.max_attempts", "spec.schedule.delay", "spec.http.url", "meta.labels"]
_NOW_US = 1_800_000_000 * SECOND_US


class Requests:
    """Sound requests by chance; of the actions, the etags that the scheduler last told."""

    def __init__(self, chance: random.Random, etags: Mapping[str, str]) -> None:
        self._chance = chance
        self._etags = etags
        self._kinds: dict[str, Callable[[], Message]] = {
            "CreateAction": self._create,
            "GetAction": lambda: GetActionRequest(id=self._id()),
            "ListActions": lambda: ListActionsRequest(page_size=chance.choice([0, 1, 7, 1000])),
            "UpdateAction": self._update,
            "DeleteAction": self._delete,
            "BatchCreateActions": lambda: BatchCreateActionsRequest(requests=self._some(self._create)),
            "BatchDeleteActions": lambda: BatchDeleteActionsRequest(requests=self._some(self._delete)),
            "ImportActions": lambda: ImportActionsRequest(requests=self._some(self._import)),
            "PauseAction": lambda: self._switch("PauseActionRequest"),
            "ResumeAction": lambda: self._switch("ResumeActionRequest"),
            "RunAction": lambda: self._switch("RunActionRequest"),
            "CancelAction": lambda: self._switch("CancelActionRequest"),
            "ExplainAction": lambda: ExplainActionRequest(id=self._id()),
        }

    def method(self) -> str:
        return self._chance.choice(list(self._kinds))

    def to(self, method: str) -> Message:
        return self._kinds[method]()

    def _some(self, one: Callable[[], Request]) -> list[Request]:
        return [one() for _ in range(self._chance.choice([0, 1, 2, 5]))]

    def _id(self) -> str:
        return self._chance.choice(IDS)

    def _etag(self, action_id: str) -> str:
        """None, mostly; the right one, or another."""
        return self._chance.choice(["", "", "", self._etags.get(action_id, ""), "another"])

    def _request_id(self) -> str:
        return self._chance.choice(["", f"request-{self._chance.randrange(300)}"])

    def _flag(self) -> bool:
        return self._chance.random() < 0.15

    def _create(self) -> CreateActionRequest:
        action = ScheduledAction(meta=Meta(id=self._id()), spec=self._spec())
        return CreateActionRequest(action=action, request_id=self._request_id(), validate_only=self._flag())

    def _update(self) -> UpdateActionRequest:
        action_id = self._id()
        labels = {"team": "billing"} if self._flag() else {}
        request = UpdateActionRequest(
            action=ScheduledAction(meta=Meta(id=action_id, labels=labels), spec=self._spec()),
            allow_missing=self._flag(),
            etag=self._etag(action_id),
            request_id=self._request_id(),
            validate_only=self._flag(),
        )
        if self._chance.random() < 0.5:
            request.update_mask.paths.extend(self._chance.sample(_PATHS, self._chance.randint(1, 3)))
        return request

    def _delete(self) -> DeleteActionRequest:
        action_id = self._id()
        return DeleteActionRequest(
            id=action_id,
            etag=self._etag(action_id),
            allow_missing=self._flag(),
            request_id=self._request_id(),
            validate_only=self._flag(),
        )

    def _import(self) -> ImportActionRequest:
        at_us = _NOW_US + self._chance.randrange(DAY_US)
        status = Status(
            state=self._chance.choice(["SCHEDULED", "RETRYING", "PAUSED", "SUCCEEDED", "FAILED", "EXPIRED"]),
            scheduled_time=timestamp(at_us),
            occurrence_time=timestamp(at_us),
        )
        status.counters.failed_attempts = status.occurrence.failed_attempts = 1
        return ImportActionRequest(
            action=ScheduledAction(meta=Meta(id=self._id()), spec=self._spec(), status=status),
            existing=self._chance.choice(["EXISTING_UNSPECIFIED", "SKIP", "REPLACE", "ERROR"]),
            request_id=self._request_id(),
            validate_only=self._flag(),
        )

    def _switch(self, name: str) -> Message:
        action_id = self._id()
        request: Message = getattr(scheduler_pb2, name)(
            id=action_id, etag=self._etag(action_id), request_id=self._request_id()
        )
        return request

    def _spec(self) -> Spec:
        chance = self._chance
        spec = Spec(
            schedule=chance.choice(
                [
                    Schedule(),
                    Schedule(delay=duration(chance.randrange(DAY_US))),
                    Schedule(start_time=timestamp(_NOW_US + chance.randrange(DAY_US))),
                    Schedule(periodic=Periodic(interval=duration(MINUTE_US), max_runs=3)),
                    Schedule(start_time=timestamp(_NOW_US), periodic=Periodic(interval=duration(DAY_US), mode="DRIFT")),
                ]
            ),
            retry=RetryPolicy(first_delay=duration(SECOND_US), multiplier=1.5, jitter=0.2, max_attempts=7),
            attempt_timeout=duration(MINUTE_US),
            retention=Retention(after_success=duration(0), after_failure=duration(DAY_US)),
            interruption_limit=3,
        )
        kind = chance.choice(["log", "handler", "http"])
        if kind == "log":
            spec.log.CopyFrom(LogLine(message="ping"))
        elif kind == "handler":
            spec.handler.CopyFrom(PythonHandler(name="remind", payload=b"{}", content_type="application/json"))
        else:
            headers = [HttpHeader(name="X-Team", value="billing")]
            spec.http.CopyFrom(HttpRequest(url="https://example.org/hook", headers=headers))
        return spec
