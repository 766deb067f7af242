"""How operations run together: writers in one transaction, readers each in its own snapshot."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import apsw

from clepsydra.store.sqlite.errors import translated, translated_at_commit
from clepsydra.store.sqlite.execution import Ended, Operation, RunTogether

T = TypeVar("T")


class AtOnce(Generic[T]):
    """A write that one statement does as a whole or, by a ConstraintError, not at all.

    Then `otherwise` does what can be done of it. To SQLite every statement is a transaction unless it is told
    otherwise: one of these that is alone needs none around it, and takes Python's global lock once, not three times.
    """

    def __init__(self, statement: str, bindings: Sequence[Any], result: T, otherwise: Operation[T]) -> None:
        self._statement = statement
        self._bindings = bindings
        self._result = result
        self.otherwise = otherwise

    def __call__(self, connection: apsw.Connection) -> T:
        try:
            return self.done(connection)
        except apsw.ConstraintError:
            return self.otherwise(connection)

    def done(self, connection: apsw.Connection) -> T:
        connection.execute(self._statement, self._bindings)
        return self._result


def commit_together(path: str, committed: Callable[[], None] = lambda: None) -> RunTogether:
    """Many callers' work, one commit, one sync of the disk; then `committed` is called."""

    def run(connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Ended]:
        only = operations[0]
        if len(operations) == 1 and isinstance(only, AtOnce):
            ended = [_commit_statement(connection, only, path)]
        else:
            ended = _commit_transaction(connection, operations, path)
        committed()
        return ended

    return run


def _commit_statement(connection: apsw.Connection, write: AtOnce[Any], path: str) -> Ended:
    try:
        return write.done(connection), None
    except apsw.ConstraintError:
        [ended] = _commit_transaction(connection, [write.otherwise], path)
        return ended
    except apsw.Error as error:
        # Nobody can tell whether the statement failed or the commit at its end.
        return None, translated_at_commit(error, path)
    except Exception as error:  # the caller's own mistake, such as a value that cannot be bound
        return None, error


def _commit_transaction(connection: apsw.Connection, operations: Sequence[Operation[Any]], path: str) -> list[Ended]:
    results: list[Ended] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        for operation in operations:
            results.append((operation(connection), None))  # noqa: PERF401 - an error must leave the loop
    except Exception as error:
        _roll_back(connection)
        if len(operations) > 1:
            # One of them failed: let each succeed or fail by itself.
            return [ended for each in operations for ended in _commit_transaction(connection, [each], path)]
        return [(None, translated(error, path) if isinstance(error, apsw.Error) else error)]
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        _roll_back(connection)
        return [(None, translated_at_commit(error, path))] * len(operations)
    return results


def read_together(path: str) -> RunTogether:
    """Each operation sees one snapshot, however many statements it has."""

    def run(connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Ended]:
        return [read(connection, operation) for operation in operations]

    def read(connection: apsw.Connection, operation: Operation[Any]) -> Ended:
        try:
            connection.execute("BEGIN")
            try:
                return operation(connection), None
            finally:
                connection.execute("COMMIT")
        except apsw.Error as error:
            _roll_back(connection)
            return None, translated(error, path)
        except Exception as error:  # the caller's own mistake, such as a value that cannot be bound
            _roll_back(connection)
            return None, error

    return run


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
