"""How a group of operations runs: all writes in one transaction, each read in a snapshot of its own."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import apsw

from clepsydra.store.errors import OutcomeUnknown
from clepsydra.store.sqlite.connection.errors import translate, translate_commit
from clepsydra.store.sqlite.connection.files import StoreFiles
from clepsydra.store.sqlite.connection.thread import Operation, Settled

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


class GroupCommit:
    """The work of many callers in one commit, with one sync of the disk; then `committed` is called.

    Nothing is acknowledged if the files are not the ones that were opened. `files` is None in simulations.
    """

    def __init__(self, path: str, files: StoreFiles | None, committed: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._files = files
        self._committed = committed

    def __call__(self, connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Settled]:
        if self._files is not None and (lost := self._files.check_log(connection)) is not None:
            return [(None, lost)] * len(operations)
        only = operations[0]
        if len(operations) == 1 and isinstance(only, SingleStatement):
            settled = [self._commit_statement(connection, only)]
        else:
            settled = self._commit_transaction(connection, operations)
        if self._files is not None and (lost := self._files.check(connection)) is not None:
            unknown = OutcomeUnknown(str(lost))
            return [(None, error or unknown) for _, error in settled]
        self._committed()
        return settled

    def _commit_statement(self, connection: apsw.Connection, write: SingleStatement[Any]) -> Settled:
        try:
            return write.execute(connection), None
        except apsw.ConstraintError:
            [settled] = self._commit_transaction(connection, [write.fallback])
            return settled
        except apsw.Error as error:
            self._failed(error, connection)
            # Either the statement has failed or the commit at its end: the error does not say which.
            return None, translate_commit(error, self._path)
        except Exception as error:  # the caller's mistake, such as a value that cannot be bound
            return None, error

    def _commit_transaction(self, connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Settled]:
        results: list[Settled] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for operation in operations:
                results.append((operation(connection), None))  # noqa: PERF401 - an error must leave the loop
        except Exception as error:
            self._failed(error, connection)
            _roll_back(connection)
            if len(operations) > 1:
                # One of them has failed: let each succeed or fail by itself.
                return [settled for each in operations for settled in self._commit_transaction(connection, [each])]
            return [(None, translate(error, self._path) if isinstance(error, apsw.Error) else error)]
        try:
            connection.execute("COMMIT")
        except apsw.Error as error:
            self._failed(error, connection)
            _roll_back(connection)
            return [(None, translate_commit(error, self._path))] * len(operations)
        return results

    def _failed(self, error: Exception, connection: apsw.Connection) -> None:
        if self._files is not None and isinstance(error, apsw.Error):
            self._files.failed(error, connection)


class SnapshotReads:
    """Each operation sees one snapshot, however many statements it has."""

    def __init__(self, path: str, files: StoreFiles | None) -> None:
        self._path = path
        self._files = files

    def __call__(self, connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Settled]:
        if self._files is not None and self._files.lost is not None:
            return [(None, self._files.lost)] * len(operations)
        return [self._read(connection, operation) for operation in operations]

    def _read(self, connection: apsw.Connection, operation: Operation[Any]) -> Settled:
        try:
            connection.execute("BEGIN")
            try:
                return operation(connection), None
            finally:
                connection.execute("COMMIT")
        except apsw.Error as error:
            _roll_back(connection)
            return None, translate(error, self._path)
        except Exception as error:  # the caller's mistake, such as a value that cannot be bound
            _roll_back(connection)
            return None, error


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
