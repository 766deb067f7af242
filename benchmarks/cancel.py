"""`python -m benchmarks.cancel`: how soon a running attempt is cancelled when its action is changed.

A scheduler and a worker, each a process of its own, at their default settings. For each kind of change (delete, pause,
update of the target, cancel), many actions run for minutes and are changed one by one; the handler notes when it is
cancelled. Then many actions are cancelled at about the time when they end: either the cancellation or the outcome
counts, and the caller learns which. Ends with 1 if anything took longer than two seconds or a response was wrong.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from grpc_status import rpc_status

from benchmarks.cancel_handlers import MOMENT_US
from benchmarks.installation import Installation, wait_until
from clepsydra.core.clock import SystemClock
from clepsydra.core.times import MILLISECOND_US, SECOND_US
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Meta, PythonHandler, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    CancelActionRequest,
    CancelActionResponse,
    CreateActionRequest,
    DeleteActionRequest,
    GetActionRequest,
    PauseActionRequest,
    UpdateActionRequest,
)
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.postgres.server import running

WITHIN_US = 2 * SECOND_US
_CLOCK = SystemClock()
_BETWEEN_CALLS_US = 10 * MILLISECOND_US


class Note(NamedTuple):
    what: str
    attempt_id: str
    action_id: str
    at_us: int


class Found(NamedTuple):
    """For one kind of change: how long each cancellation took, and what was wrong."""

    kind: str
    took_us: list[int]
    wrong: list[str]
    # What the responses were, where they differ.
    responses: str = ""

    def line(self) -> str:
        if self.responses:
            return f"{self.kind:10} {self.responses}; {len(self.wrong)} wrong"
        took_ms = [us / 1000 for us in self.took_us]
        median, longest = statistics.median(took_ms), max(took_ms)
        counts = f"{self.kind:10} {len(self.took_us):5} cancelled"
        return f"{counts}, median {median:7.1f} ms, at most {longest:7.1f} ms; {len(self.wrong)} wrong"


Change = Callable[[Any, str], None]


def _delete(scheduler: Any, action_id: str) -> None:
    scheduler.DeleteAction(DeleteActionRequest(id=action_id))


def _pause(scheduler: Any, action_id: str) -> None:
    scheduler.PauseAction(PauseActionRequest(id=action_id))


def _retarget(scheduler: Any, action_id: str) -> None:
    action = ScheduledAction(meta=Meta(id=action_id), spec=Spec(handler=PythonHandler(name="minutes-too")))
    mask = FieldMask(paths=["spec.handler.name"])
    scheduler.UpdateAction(UpdateActionRequest(action=action, update_mask=mask))


def _cancel(scheduler: Any, action_id: str) -> None:
    response = scheduler.CancelAction(CancelActionRequest(id=action_id))
    assert response.cancelled == CancelActionResponse.RUNNING_ATTEMPT, "the response says that an attempt was running"


CHANGES: dict[str, Change] = {"delete": _delete, "pause": _pause, "update": _retarget, "cancel": _cancel}


class Trial:
    def __init__(self, installation: Installation, scheduler: Any, repetitions: int) -> None:
        self._installation = installation
        self._scheduler = scheduler
        self._repetitions = repetitions

    def change(self, kind: str) -> Found:
        ids = self._create(kind, "minutes")
        started = self._wait_for(ids, "started")
        changed_us: dict[str, int] = {}
        for action_id in ids:
            changed_us[action_id] = _CLOCK.now_us()
            CHANGES[kind](self._scheduler, action_id)
        cancelled = self._wait_for(ids, "cancelled")
        found = Found(kind, [cancelled[each].at_us - changed_us[each] for each in ids], [])
        for action_id in ids:
            if cancelled[action_id].attempt_id != started[action_id].attempt_id:
                found.wrong.append(f"{action_id}: another attempt was cancelled")
            if kind != "delete":
                found.wrong.extend(self._wrong_status(kind, action_id))
        if kind == "update":
            for action_id in ids:
                _delete(self._scheduler, action_id)
        return found

    def _wrong_status(self, kind: str, action_id: str) -> Iterator[str]:
        """No outcome of a cancelled run is accepted."""
        status = self._scheduler.GetAction(GetActionRequest(id=action_id)).status
        counters = status.counters
        if counters.succeeded_attempts or counters.failed_attempts or counters.interrupted_attempts:
            yield f"{action_id}: an outcome was accepted: {counters}"
        if kind == "cancel" and (status.state, status.last_attempt.outcome) != (
            action_pb2.CANCELLED,
            Attempt.CANCELLATION,
        ):
            yield f"{action_id}: it is {status}"

    def race(self) -> Found:
        """Cancel attempts at about the time when they end."""
        ids = self._create("race", "moment")
        started = self._wait_for(ids, "started")
        ends_us = max(started[action_id].at_us for action_id in ids) + MOMENT_US
        found, kept = Found("race", [], []), 0
        for number, action_id in enumerate(ids):
            # Half of the calls come before the end, half after it.
            call_us = ends_us + (number - len(ids) // 2) * _BETWEEN_CALLS_US
            wait_until(lambda at_us=call_us: _CLOCK.now_us() >= at_us, pause_s=0.0005)  # type: ignore[misc]
            try:
                self._scheduler.CancelAction(CancelActionRequest(id=action_id))
            except grpc.RpcError as error:
                failed: Any = error
                status = rpc_status.from_call(failed)
                has_reason = status is not None and b"OCCURRENCE_ENDED" in status.details[0].value
                expected, kept = action_pb2.SUCCEEDED, kept + 1
                if not has_reason:
                    found.wrong.append(f"{action_id}: {error}")
            else:
                expected = action_pb2.CANCELLED
            state = self._scheduler.GetAction(GetActionRequest(id=action_id)).status.state
            if state != expected:
                found.wrong.append(f"{action_id} is {action_pb2.State.Name(state)}")
        return found._replace(responses=f"{len(ids) - kept} were cancelled, {kept} had ended a moment before")

    def _create(self, kind: str, handler: str) -> list[str]:
        ids = [f"{kind}-{number}" for number in range(self._repetitions)]
        spec = Spec(attempt_timeout=Duration(seconds=900), handler=PythonHandler(name=handler))
        requests = [
            CreateActionRequest(action=ScheduledAction(meta=Meta(id=action_id), spec=spec)) for action_id in ids
        ]
        response = self._scheduler.BatchCreateActions(BatchCreateActionsRequest(requests=requests))
        assert all(result.HasField("action") for result in response.results)
        return ids

    def _wait_for(self, ids: list[str], what: str) -> dict[str, Note]:
        """The first note of this kind of each action."""
        found: dict[str, Note] = {}

        def are_all_there() -> bool:
            found.clear()
            for note in self._notes():
                if note.what == what:
                    found.setdefault(note.action_id, note)
            return all(action_id in found for action_id in ids)

        wait_until(are_all_there, timeout_s=60)
        return found

    def _notes(self) -> Iterator[Note]:
        for file in self._installation.folder.glob("notes-*"):
            for line in file.read_text().splitlines():
                what, attempt_id, action_id, at_us = line.split("\t")
                yield Note(what, attempt_id, action_id, int(at_us))


def measure(folder: Path, store: str | None, repetitions: int) -> list[Found]:
    """All changes and the race, on an installation of its own."""
    with Installation(folder, store, handlers="benchmarks.cancel_handlers") as installation:
        address = installation.scheduler()
        installation.worker()
        with grpc.insecure_channel(address) as channel:
            trial = Trial(installation, SchedulerServiceStub(channel), repetitions)  # type: ignore[no-untyped-call]
            found = [*map(trial.change, CHANGES), trial.race()]
        installation.audit_is_clean()
        return found


@contextmanager
def store_of(kind: str) -> Iterator[str | None]:
    """The URL of a fresh store; None for SQLite in the folder of the installation."""
    if kind == "sqlite":
        yield None
        return
    with running() as server:
        yield f"{server.url}{'&' if '?' in server.url else '?'}schema=cancel"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cancel", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100, help="actions for each kind of change (default 100)")
    parser.add_argument("--store", choices=("sqlite", "postgres"), help="only this store")
    chosen = parser.parse_args()
    wrong: list[str] = []
    for kind in [chosen.store] if chosen.store else ["sqlite", "postgres"]:
        sys.stdout.write(f"{kind}\n")
        with tempfile.TemporaryDirectory(prefix="clepsydra-cancel-") as folder, store_of(kind) as store:
            for found in measure(Path(folder), store, chosen.repetitions):
                sys.stdout.write(f"  {found.line()}\n")
                wrong += found.wrong
                wrong += [f"{found.kind}: it took {us / SECOND_US:.3f} s" for us in found.took_us if us > WITHIN_US]
    sys.stdout.write("".join(f"{sentence}\n" for sentence in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
