"""A put in a transaction of the application's own: it is committed or rolled back with whatever else is in it."""

import sqlite3
from typing import Any

from clepsydra.core.clock import Clock
from clepsydra.store.errors import Unusable
from clepsydra.store.own_transaction import Place
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.sqlite.connection import APPLICATION_ID, QUERIES
from clepsydra.store.sqlite.installation import SCHEMA_VERSION


class Within:
    """An installation as seen from a connection of the application, of sqlite3 or apsw, within a transaction.

    SQLite has one writer at a time: what is read in a transaction that then writes is still so when it writes, or the
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
        if application_id != APPLICATION_ID or not 0 < version <= SCHEMA_VERSION:
            raise Unusable(
                "the application's database is not a store of this version of Clepsydra; make one with "
                "`clepsydra init` before the application creates its own tables in the file"
            )
        [(shards,)] = self._fetch(QUERIES["count_locks"])
        found = self._fetch(QUERIES["get_one"], (action_id,))
        return Place(shards, self._clock.now_us(), Action(*found[0][1:]) if found else None)

    def put(self, put: Put) -> PutResult:
        """Write what was proposed from the last look: nobody else can have written since."""
        action = put.action
        self._fetch(QUERIES["write_life"], action)
        row = (put.shard_id, put.created_at_us, action.action_id, action.guid, action.scheduled_at_us)
        self._fetch(QUERIES["append_row"], row)
        return PutResult(PutOutcome.DONE)

    def _fetch(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        if isinstance(cursor, sqlite3.Cursor):
            # Rows as they are, whatever the application makes of its own.
            cursor.row_factory = None
        return list(cursor.execute(statement, tuple(parameters)))
