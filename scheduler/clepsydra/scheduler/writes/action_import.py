"""The import of an action: it goes on here as it stood in the installation from which it comes.

A repeated import finds its id, or its request id, and writes nothing; so an interrupted import can be started again.
"""

from clepsydra.core.action.creation import FIRST_REVISION
from clepsydra.core.action.imported import imported_action
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.scheduler.codec import decode_or_keys, encode, with_removable_time
from clepsydra.scheduler.errors import AlreadyExists
from clepsydra.scheduler.writes.idempotency import Applied, find_applied, key_of, remember
from clepsydra.scheduler.writes.lives import Plan, Stamp
from clepsydra.store.port import Action, Put
from clepsydra.v1.scheduler_pb2 import ImportActionRequest, ImportActionsResponse


class Import:
    """A mutation, as in `mutations.py`. `outcome` is what the last plan comes to."""

    outcome: ImportActionsResponse.Outcome = ImportActionsResponse.OUTCOME_UNSPECIFIED

    def __init__(self, request: ImportActionRequest, stamp: Stamp) -> None:
        self.action_id = request.action.meta.id
        self.request = request
        self._key = key_of(request)
        self._stamp = stamp

    def plan(self, current: Action | None) -> Plan:
        # An action that cannot be decoded can still be replaced.
        stored = None if current is None else decode_or_keys(current)
        applied: Applied = () if stored is None else stored.applied
        if stored is not None and find_applied(self._key, applied) is not None:
            self.outcome = ImportActionsResponse.REPEATED
            return encode(stored.action), None
        revision = FIRST_REVISION
        self.outcome = ImportActionsResponse.CREATED
        if stored is not None and not stored.is_deleted:
            if self.request.existing == ImportActionRequest.ERROR:
                raise AlreadyExists(self.action_id)
            if self.request.existing != ImportActionRequest.REPLACE:
                self.outcome = ImportActionsResponse.SKIPPED
                return encode(stored.action), None
            revision = stored.action.meta.revision + 1
            self.outcome = ImportActionsResponse.REPLACED
        response = encode(imported_action(self.request.action, self._stamp.guid, revision, self._stamp.now_us))
        return response, None if self.request.validate_only else self._put(response, revision, applied, current)

    def _put(self, response: Action, revision: int, earlier: Applied, seen: Action | None) -> Put:
        row = remember(self._key, response, revision, earlier, self._stamp.now_us)
        if seen is not None:
            # As for every life that replaces another: calls that made the earlier one may still be retried.
            row = with_removable_time(row, self._stamp.now_us + DELETED_RETENTION_MIN_US)
        return Put(seen, row, self._stamp.shard_id, self._stamp.now_us)
