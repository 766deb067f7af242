"""A write of one statement is committed by itself, a group in one transaction; and how either fails."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Action, Advance, AdvanceOutcome, Mark, Put, PutOutcome, Queue, Row
from clepsydra.store.sqlite import SqliteStore
from clepsydra.store.sqlite.advance import advance_operation
from clepsydra.store.sqlite.connection.connect import connect, create_temporary_objects
from clepsydra.store.sqlite.connection.thread import Operation, Settled
from clepsydra.store.sqlite.connection.transaction import GroupCommit, SingleStatement
from clepsydra.store.sqlite.put import put_operation

DONE, GONE = AdvanceOutcome.DONE, AdvanceOutcome.GONE
AT_US = 1_000


class Traced:
    """A store's writer, and the statements that it executed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection = connect(path)
        create_temporary_objects(self.connection)
        self.statements: list[str] = []
        self.connection.exec_trace = self._trace

    def _trace(self, _cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
        self.statements.append(statement.split()[0])
        return True

    def run(self, *operations: Operation[Any]) -> list[Settled]:
        self.statements.clear()
        return GroupCommit(self.path, None)(self.connection, operations)

    def rows(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM incoming_queue").get)


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[Traced]:
    path = str(tmp_path / "store.db")
    await SqliteStore.install(path, 1)
    writer = Traced(path)
    yield writer
    writer.connection.close()


def create(*names: str) -> Operation[Any]:
    actions = [Action(name, f"guid of {name}", b"meta", b"spec", b"status", AT_US) for name in names]
    return put_operation([Put(None, action, 0, AT_US) for action in actions], AT_US)


def begin(*names: str) -> Operation[Any]:
    rows = [Row(Queue.INCOMING, 0, AT_US, name, f"guid of {name}", AT_US) for name in names]
    return advance_operation([Advance(row, 2 * AT_US) for row in rows], Mark("sync", 1))


def outcomes(settled: list[Settled]) -> list[Any]:
    assert not any(error for _, error in settled)
    return [[getattr(each, "outcome", each) for each in result] for result, _ in settled]


def test_a_batch_that_is_alone_is_one_statement(writer: Traced) -> None:
    names = [f"a{n}" for n in range(50)]
    for batch in (create(*names), begin(*names)):
        writer.run(batch)
        assert writer.statements == ["INSERT"]
    assert writer.rows() == 0


@pytest.mark.parametrize(("count", "inserts"), [(960, 2), (999, 3), (1000, 2), (1001, 3)])
def test_many_creations_are_few_statements(writer: Traced, count: int, inserts: int) -> None:
    """One for each table, and one for the rest; none is too long for the cache of prepared statements."""
    writer.run(create(*(f"a{n}" for n in range(count))))
    assert writer.statements == ["BEGIN", *["INSERT"] * inserts, "COMMIT"]
    assert writer.rows() == count
    assert writer.connection.cache_stats()["too_big"] == 0


def test_begins_of_adjacent_rows_move_as_a_range(writer: Traced) -> None:
    names = [f"a{n:03}" for n in range(200)]
    writer.run(create(*names))
    assert outcomes(writer.run(begin(*names[20:150]))) == [[DONE] * 130]
    assert writer.statements == ["BEGIN", "SELECT", "INSERT", "DELETE", "COMMIT"]
    left = [name for (name,) in writer.connection.execute("SELECT action_id FROM incoming_queue ORDER BY 1")]
    assert left == [*names[:20], *names[150:]]
    columns = """
        SELECT DISTINCT shard_id, scheduled_at, added_to_incoming_queue_at,
            moved_from_incoming_to_processing_queue_by_sync_with_guid, moved_from_incoming_to_processing_queue_at,
            last_reschedule_by_sync_with_guid, last_reschedule_at
        FROM processing_queue
    """
    in_range = writer.connection.execute(columns).fetchall()
    # A few are begun one by one, with the same result.
    writer.run(begin(*names[150:160]))
    assert writer.connection.execute(columns).fetchall() == in_range == [(0, 2 * AT_US, AT_US, None, None, "sync", 1)]


def test_a_group_shares_one_commit(writer: Traced) -> None:
    assert outcomes(writer.run(create("a"), create("b"), begin("a"))) == [
        [PutOutcome.DONE],
        [PutOutcome.DONE],
        [DONE],
    ]
    assert writer.statements == ["BEGIN", "INSERT", "INSERT", "INSERT", "COMMIT"]


def test_one_that_is_refused_does_not_stop_the_others(writer: Traced) -> None:
    writer.run(create("a", "b", "c"))
    assert outcomes(writer.run(begin("a", "x", "b"))) == [[DONE, GONE, DONE]]
    assert outcomes(writer.run(begin("c", "x"), create("c", "d"))) == [
        [DONE, GONE],
        [PutOutcome.DONE, PutOutcome.DONE],
    ]
    assert writer.statements[0] == "BEGIN"
    assert writer.statements.count("COMMIT") == 1
    assert writer.rows() == 1


def test_the_write_lock_of_another_process_is_waited_for_and_then_nothing_was_done(writer: Traced) -> None:
    other = apsw.Connection(writer.path)
    other.execute("BEGIN IMMEDIATE")
    waits: list[int] = []

    def wait(failures: int) -> bool:
        waits.append(failures)
        return failures < 3

    writer.connection.set_busy_handler(wait)
    for operations in ([create("a")], [create("a"), create("b")]):
        waits.clear()
        for _, error in writer.run(*operations):
            assert isinstance(error, Unavailable)
            assert "write lock" in str(error)
        assert waits[:4] == [0, 1, 2, 3]
    other.execute("ROLLBACK")
    assert outcomes(writer.run(create("a"))) == [[PutOutcome.DONE]]
    assert writer.rows() == 1


class Failing:
    """A connection whose statements fail, from the one that starts with a word."""

    in_transaction = False

    def __init__(self, word: str) -> None:
        self._word = word

    def execute(self, statement: str, _bindings: object = ()) -> None:
        if statement.startswith(self._word):
            raise apsw.IOError("the disk")


def _write(connection: apsw.Connection) -> None:
    connection.execute("INSERT")


@pytest.mark.parametrize(
    ("operation", "fails", "error"),
    [
        # It may be the commit at its end that failed.
        (SingleStatement("INSERT", (), None, _write), "INSERT", OutcomeUnknown),
        (_write, "INSERT", Unavailable),
        (_write, "COMMIT", OutcomeUnknown),
    ],
    ids=["a statement alone", "a statement of a transaction", "a commit"],
)
def test_after_a_failed_write_to_the_disk_it_is_known_or_unknown_what_was_committed(
    operation: Callable[[apsw.Connection], None], fails: str, error: type[Exception]
) -> None:
    connection: Any = Failing(fails)
    [(_, raised)] = GroupCommit("store.db", None)(connection, [operation])
    assert type(raised) is error


def test_a_value_that_cannot_be_bound_is_its_callers_own_mistake(writer: Traced) -> None:
    wrong: Any = object()
    put = put_operation([Put(None, Action("a", "guid", wrong, b"", b"", AT_US), 0, AT_US)], AT_US)
    [(_, error)] = writer.run(put)
    assert isinstance(error, TypeError)
    assert outcomes(writer.run(create("b"))) == [[PutOutcome.DONE]]
