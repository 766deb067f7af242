"""How operations run together: writers in one transaction, readers each in its own snapshot."""

from collections.abc import Sequence
from typing import Any

import apsw

from clepsydra.store.sqlite.errors import translated, translated_at_commit
from clepsydra.store.sqlite.execution import Ended, Operation, RunTogether


def commit_together(path: str) -> RunTogether:
    """Many callers' work, one commit, one sync of the disk."""

    def run(connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Ended]:
        results: list[Ended] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for operation in operations:
                results.append((operation(connection), None))  # noqa: PERF401 - an error must leave the loop
        except Exception as error:
            _roll_back(connection)
            if len(operations) > 1:
                # One of them failed: let each succeed or fail by itself.
                return [ended for operation in operations for ended in run(connection, [operation])]
            return [(None, translated(error, path) if isinstance(error, apsw.Error) else error)]
        try:
            connection.execute("COMMIT")
        except apsw.Error as error:
            _roll_back(connection)
            return [(None, translated_at_commit(error, path))] * len(operations)
        return results

    return run


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
