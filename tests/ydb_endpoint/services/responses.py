"""Results and errors, encoded as messages of YDB's protocol."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.messages import issue_pb2, operation_pb2, query_pb2, value_pb2
from tests.ydb_endpoint.runtime.text_run import ResultSet
from tests.ydb_endpoint.yql.types import type_to_message
from tests.ydb_endpoint.yql.values import encoded

_PART_ROWS = 300


def refusal(response: Any, refused: Refused) -> Any:
    """An error of the query service."""
    return response(status=int(refused.status), issues=[_issue(refused)])


def _issue(refused: Refused) -> Any:
    """The cause is the innermost issue."""
    issue = issue_pb2.IssueMessage(message=str(refused))
    for message in reversed(refused.within):
        issue = issue_pb2.IssueMessage(message=message, issues=[issue])
    return issue


def operation(response: Any, result: Any = None) -> Any:
    """A response of the older services, which wrap everything in an operation."""
    done = operation_pb2.Operation(ready=True, status=int(Status.SUCCESS))
    if result is not None:
        done.result.Pack(result)
    return response(operation=done)


def refused_operation(response: Any, refused: Refused) -> Any:
    failed = operation_pb2.Operation(ready=True, status=int(refused.status), issues=[_issue(refused)])
    return response(operation=failed)


def response_parts(
    results: list[ResultSet], transaction_id: str, *, concurrent: bool, most_rows: int | None
) -> Iterator[Any]:
    """The parts of a response. Concurrent result sets are interleaved, the last one first: no order is promised."""
    yield query_pb2.ExecuteQueryResponsePart(
        status=int(Status.SUCCESS), tx_meta=query_pb2.TransactionMeta(id=transaction_id)
    )
    sets = [list(_parts_of(index, result, most_rows)) for index, result in enumerate(results)]
    if concurrent:
        rounds = zip_longest(*reversed(sets))
        yield from (part for together in rounds for part in together if part is not None)
    else:
        yield from (part for result in sets for part in result)


def _parts_of(index: int, result: ResultSet, most_rows: int | None) -> Iterator[Any]:
    rows = result.rows if most_rows is None else result.rows[:most_rows]
    for start in range(0, max(len(rows), 1), _PART_ROWS):
        found = value_pb2.ResultSet(
            columns=[value_pb2.Column(name=name, type=type_to_message(kind)) for name, kind in result.columns.items()],
            truncated=len(rows) < len(result.rows),
        )
        for row in rows[start : start + _PART_ROWS]:
            items = [encoded(kind, row[name]) for name, kind in result.columns.items()]
            found.rows.append(value_pb2.Value(items=items))
        yield query_pb2.ExecuteQueryResponsePart(status=int(Status.SUCCESS), result_set_index=index, result_set=found)
