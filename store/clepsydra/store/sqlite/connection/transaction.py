"""How a group of operations runs: all writes in one transaction, each read in a snapshot of its own."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import apsw

from clepsydra.store.sqlite.connection.errors import translate, translate_commit
from clepsydra.store.sqlite.connection.thread import Operation, RunGroup, Settled

T = TypeVar("T")


class SingleStatement(Generic[T]):
    """A write by one statement that does all of its batch or, with a ConstraintError, nothing.

    In that case `fallback` judges the batch item by item. SQLite commits a statement outside a transaction by itself:
    if this is the whole group, it needs no BEGIN and COMMIT, and takes Python's global lock once instead of three
    times.
    """

    def __init__(self, statement: str, bindings: Sequence[Any], result: T, fallback: Operation[T]) -> None:
        self._statement = statement
        self._bindings = bindings
        self._result = result
        self.fallback = fallback

    def __call__(self, connection: apsw.Connection) -> T:
        try:
            return self.execute(connection)
        except apsw.ConstraintError:
            return self.fallback(connection)

    def execute(self, connection: apsw.Connection) -> T:
        connection.execute(self._statement, self._bindings)
        return self._result


def write_group(path: str, committed: Callable[[], None] = lambda: None) -> RunGroup:
    """The work of many callers in one commit, with one sync of the disk; then `committed` is called."""

    def run(connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Settled]:
        only = operations[0]
        if len(operations) == 1 and isinstance(only, SingleStatement):
            settled = [_commit_statement(connection, only, path)]
        else:
            settled = _commit_transaction(connection, operations, path)
        committed()
        return settled

    return run


def _commit_statement(connection: apsw.Connection, write: SingleStatement[Any], path: str) -> Settled:
    try:
        return write.execute(connection), None
    except apsw.ConstraintError:
        [settled] = _commit_transaction(connection, [write.fallback], path)
        return settled
    except apsw.Error as error:
        # Either the statement has failed or the commit at its end: the error does not say which.
        return None, translate_commit(error, path)
    except Exception as error:  # the caller's mistake, such as a value that cannot be bound
        return None, error


def _commit_transaction(connection: apsw.Connection, operations: Sequence[Operation[Any]], path: str) -> list[Settled]:
    results: list[Settled] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        for operation in operations:
            results.append((operation(connection), None))  # noqa: PERF401 - an error must leave the loop
    except Exception as error:
        _roll_back(connection)
        if len(operations) > 1:
            # One of them has failed: let each succeed or fail by itself.
            return [settled for each in operations for settled in _commit_transaction(connection, [each], path)]
        return [(None, translate(error, path) if isinstance(error, apsw.Error) else error)]
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        _roll_back(connection)
        return [(None, translate_commit(error, path))] * len(operations)
    return results


def read_group(path: str) -> RunGroup:
    """Each operation sees one snapshot, however many statements it has."""

    def run(connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Settled]:
        return [_read(connection, operation, path) for operation in operations]

    return run


def _read(connection: apsw.Connection, operation: Operation[Any], path: str) -> Settled:
    try:
        connection.execute("BEGIN")
        try:
            return operation(connection), None
        finally:
            connection.execute("COMMIT")
    except apsw.Error as error:
        _roll_back(connection)
        return None, translate(error, path)
    except Exception as error:  # the caller's mistake, such as a value that cannot be bound
        _roll_back(connection)
        return None, error


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
