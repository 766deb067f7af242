"""What the clients did and what they were told: a call is written down before it is made, and again when it has ended.

A call whose end was never written has an unknown outcome: its client was killed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.chaos.journal import Appender, entries_in


class Kind(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Outcome(StrEnum):
    OK = "ok"
    # Certainly nothing was done: every try was answered with that.
    NOT_DONE = "not done"
    # The service said no for good.
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Call:
    """One call of a client, or one item of its batch; its request id names it."""

    request_id: str
    kind: Kind
    action_id: str
    invoked_us: int
    # What was asked for, by a create or an update.
    due_us: int = 0
    runs: int = 0
    outcome: Outcome = Outcome.UNKNOWN
    ended_us: int = 0
    # The life that it gave the action.
    guid: str = ""
    error: str = ""
    tries: int = 0
    # What later replays of it were answered with.
    replayed_guids: list[str] = field(default_factory=list)


class HistoryWriter:
    """One client's history, over all the lives of its process."""

    def __init__(self, path: Path) -> None:
        self._appender = Appender(path, synced=False)

    def began(self) -> None:
        self._appender.append([{"event": "began"}])

    def invoked(self, calls: Iterable[Call]) -> None:
        self._appender.append(
            {
                "event": "invoked",
                "request_id": call.request_id,
                "kind": call.kind,
                "action_id": call.action_id,
                "invoked_us": call.invoked_us,
                "due_us": call.due_us,
                "runs": call.runs,
            }
            for call in calls
        )

    def ended(self, calls: Iterable[Call]) -> None:
        self._appender.append(
            {
                "event": "ended",
                "request_id": call.request_id,
                "outcome": call.outcome,
                "ended_us": call.ended_us,
                "guid": call.guid,
                "error": call.error,
                "tries": call.tries,
            }
            for call in calls
        )

    def replayed(self, call: Call, guid: str) -> None:
        self._appender.append([{"event": "replayed", "request_id": call.request_id, "guid": guid}])

    def close(self) -> None:
        self._appender.close()


@dataclass
class History:
    calls: dict[str, Call]
    # How often a client's process began.
    beginnings: int = 0

    @property
    def acknowledged_creations(self) -> int:
        return sum(call.kind is Kind.CREATE and call.outcome is Outcome.OK for call in self.calls.values())


def read_history(paths: Sequence[Path]) -> History:
    history = History({})
    for path in paths:
        for record in entries_in(path):
            _take_in(history, record)
    return history


def _take_in(history: History, record: dict[str, Any]) -> None:
    event = record.pop("event")
    if event == "began":
        history.beginnings += 1
    elif event == "invoked":
        call = Call(**{**record, "kind": Kind(record["kind"])})
        history.calls[call.request_id] = call
    elif event == "replayed":
        history.calls[record["request_id"]].replayed_guids.append(record["guid"])
    else:
        call = history.calls[record.pop("request_id")]
        call.outcome = Outcome(record.pop("outcome"))
        for name, value in record.items():
            setattr(call, name, value)
