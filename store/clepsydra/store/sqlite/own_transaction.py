"""A put in a transaction of the application's own: it is committed or rolled back with everything else in it."""

import sqlite3
from typing import Any

from clepsydra.core.clock import Clock
from clepsydra.store.errors import Unusable
from clepsydra.store.install import check_version
from clepsydra.store.own_transaction import Place
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.sqlite.connection.connect import APPLICATION_ID, STATEMENTS
from clepsydra.store.sqlite.installation import MIGRATIONS


class OwnTransaction:
    """An installation, seen through a connection of the application (sqlite3 or apsw) that is within a transaction.

    SQLite has one writer at a time: what is read in a transaction that then writes is unchanged when it writes, or the
    write fails with an error of the application's own library.
    """

    def __init__(self, connection: Any, clock: Clock) -> None:
        if not connection.in_transaction:
            raise ValueError("an action is created within a transaction: execute BEGIN IMMEDIATE first")
        self._connection = connection
        self._clock = clock

    def look(self, action_id: str) -> Place:
        [(application_id,)] = self._fetch("PRAGMA application_id")
        [(version,)] = self._fetch("PRAGMA user_version")
        if application_id != APPLICATION_ID:
            raise Unusable(
                "the application's database is not a store of Clepsydra; make one with `clepsydra init` before the "
                "application creates its own tables in the file"
            )
        check_version("of the application", version, len(MIGRATIONS))
        [(shards,)] = self._fetch(STATEMENTS["count_shards"])
        found = self._fetch(STATEMENTS["get_one"], (action_id,))
        return Place(shards, self._clock.now_us(), Action(*found[0]) if found else None)

    def put(self, put: Put) -> PutResult:
        """Write what was planned from the last look: no other connection can have written since."""
        action = put.action
        self._fetch(STATEMENTS["write_life"], action)
        row = (put.shard_id, put.created_at_us, action.action_id, action.guid, action.scheduled_at_us)
        self._fetch(STATEMENTS["append_row"], row)
        return PutResult(PutOutcome.DONE)

    def _fetch(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        if isinstance(cursor, sqlite3.Cursor):
            # Plain tuples, whatever row factory the application uses.
            cursor.row_factory = None
        return list(cursor.execute(statement, tuple(parameters)))
