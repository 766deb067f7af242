"""Changes by users: one statement for a batch, in the order of action ids."""

from collections.abc import Sequence
from typing import Any

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.batch import check_named_once
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.postgres.array_parameters import put_parameters
from clepsydra.store.postgres.calls import Calls, Retry
from clepsydra.store.postgres.wakeup import Notifier
from clepsydra.store.wakeup import Wakeups

# The judgement of an action that has changed since the statement's snapshot, so that nothing was written for it.
LOST = "lost"

_DONE = PutResult(PutOutcome.DONE)


class Puts:
    _calls: Calls
    _wakeups: Wakeups
    _notifier: Notifier

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        check_named_once(put.action.action_id for put in puts)
        results = await self._put(puts)
        shards = {
            put.shard_id
            for put, result in zip(puts, results, strict=True)
            if put.shard_id is not None and result.outcome is PutOutcome.DONE
        }
        for shard_id in shards:
            self._wakeups.wake(shard_id)
        self._notifier.notify(shards)
        return results

    async def _put(self, puts: Sequence[Put]) -> list[PutResult]:
        """Send the batch, and again what was lost. The statement returns what it has not done."""
        results = [_DONE] * len(puts)
        pending = sorted(range(len(puts)), key=lambda n: puts[n].action.action_id)
        retry = Retry()
        while pending:
            batch = put_parameters([puts[n] for n in pending])
            lost = []
            for place, judgement, *current in await self._calls.write("put", *batch, CALL_RETRY_US, retry=retry):
                n = pending[place]
                if judgement == LOST:
                    lost.append(n)
                else:
                    results[n] = result_of(judgement, puts[n].action.action_id, current)
            if lost:
                retry.judge_again()
            pending = lost
        retry.certainty.check_put_results(results)
        return results


def result_of(judgement: str, action_id: str, current: Sequence[Any]) -> PutResult:
    """The result of a put that was judged late or conflict; `current` is the stored action, or NULLs."""
    if judgement == "late":
        return PutResult(PutOutcome.TOO_LATE)
    assert judgement == "conflict", judgement
    if current[0] is None:
        return PutResult(PutOutcome.CONFLICT)
    return PutResult(PutOutcome.CONFLICT, Action(action_id, *current))
