"""The short form of `python -m tests.fuzz`, the findings of the long one, and a judge that is not asleep."""

from pathlib import Path

import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from clepsydra.scheduler.api.endpoint import SERVICE
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import CreateActionRequest, GetActionRequest
from tests.fuzz.campaign import campaign
from tests.fuzz.verdicts import DOCUMENTED, Answer, Call, Wrong, judge, may_write

CALLS = 2000


async def test_whatever_is_sent_is_answered_as_documented_and_nothing_rejected_is_written(tmp_path: Path) -> None:
    async with campaign(tmp_path, seed=20) as fuzzing:
        await fuzzing.run(CALLS)
    assert sum(fuzzing.answers.values()) == CALLS
    # Everything that is documented was met, so that the fuzzing went deep enough.
    met = {(method, code) for method, code in fuzzing.answers if code != "RESOURCE_EXHAUSTED"}
    assert met >= {(method, code) for method in SERVICE.methods_by_name for code in ("OK", "INVALID_ARGUMENT")}
    assert met >= {
        (method, code) for method, codes in DOCUMENTED.items() for code in codes if code != "FAILED_PRECONDITION"
    }
    assert fuzzing.writes > 100


def _packed(*details: BadRequest | ErrorInfo) -> list[Any]:
    packed = []
    for detail in details:
        each = Any()
        each.Pack(detail)
        packed.append(each)
    return packed


INVALID = ErrorInfo(reason="INVALID_ARGUMENT", domain="clepsydra")
GET = Call("GetAction", GetActionRequest(id="a").SerializeToString())
UNREADABLE = Call("GetAction", b"\xff")


def _refused(code: str, number: int, message: str, *details: BadRequest | ErrorInfo) -> Answer:
    return Answer(code, message, Status(code=number, message=message, details=_packed(*details)), None)


def _invalid(field: str, message: str, description: str = "must be") -> Answer:
    bad = BadRequest(field_violations=[{"field": field, "description": description}])
    return _refused("INVALID_ARGUMENT", 3, message, bad, INVALID)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (GET, _refused("INTERNAL", 13, "oh", ErrorInfo(reason="INTERNAL", domain="clepsydra"))),
        (GET, _refused("UNAVAILABLE", 14, "oh", ErrorInfo(reason="OUTCOME_UNKNOWN", domain="clepsydra"))),
        (GET, _refused("ALREADY_EXISTS", 6, "oh", ErrorInfo(reason="ALREADY_EXISTS", domain="clepsydra"))),
        (GET, Answer("NOT_FOUND", "there is no action 'a'", None, None)),
        (GET, _refused("NOT_FOUND", 5, "there is none", ErrorInfo(reason="OTHER", domain="clepsydra"))),
        (GET, _refused("INVALID_ARGUMENT", 3, "id: must be", INVALID)),
        (GET, _invalid("soul", "soul: must be")),
        (GET, _invalid("id", "something is wrong")),
        (GET, _invalid("id", "id: must be", "")),
        (UNREADABLE, Answer("OK", "", None, ScheduledAction())),
    ],
)
def test_an_answer_that_is_not_documented_is_not_let_through(call: Call, answer: Answer) -> None:
    with pytest.raises(Wrong):
        judge(call, answer)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (GET, Answer("OK", "", None, ScheduledAction())),
        (GET, _invalid("id", "id: must be")),
        (UNREADABLE, _invalid("", "the request cannot be read", "cannot be read")),
    ],
)
def test_an_answer_that_is_documented_is_let_through(call: Call, answer: Answer) -> None:
    judge(call, answer)


def test_what_is_only_looked_at_or_rejected_may_not_write() -> None:
    created = Answer("OK", "", None, ScheduledAction())
    create = CreateActionRequest(request_id="r")
    assert may_write(Call("CreateAction", create.SerializeToString()), created)
    assert not may_write(Call("CreateAction", create.SerializeToString()), _invalid("action", "action: must be"))
    assert not may_write(GET, created)
    create.validate_only = True
    assert not may_write(Call("CreateAction", create.SerializeToString()), created)
