"""How a repeated call is recognised.

An action remembers the last few calls that carried a request id, with what they produced; so do its tombstone and an
action created over that. The fingerprint tells a repeated call from another one that uses the same id by mistake.
"""

import hashlib
from typing import Any, NamedTuple

from clepsydra.core.action.creation import FIRST_REVISION, etag_of
from clepsydra.core.limits import APPLIED_REQUESTS, DELETED_RETENTION_MIN_US, RECENT_REQUESTS
from clepsydra.core.times import timestamp, us_of
from clepsydra.core.validation.rules import FieldViolation
from clepsydra.scheduler.codec import with_applied_requests
from clepsydra.scheduler.errors import InvalidArgument
from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import AppliedRequest, ScheduledAction
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

_FINGERPRINT_BYTES = 16

Applied = tuple[AppliedRequest, ...]


class IdempotencyKey(NamedTuple):
    request_id: str
    fingerprint: bytes


def key_of(request: Any) -> IdempotencyKey | None:
    """None for a call without a request id, which cannot be recognised."""
    if not request.request_id:
        return None
    content = type(request)()
    content.CopyFrom(request)
    content.ClearField("request_id")
    if "validate_only" in content.DESCRIPTOR.fields_by_name:
        content.ClearField("validate_only")
    # Pause and resume look the same on the wire, so the kind of call is part of the fingerprint.
    encoded = content.DESCRIPTOR.full_name.encode() + b"\0" + content.SerializeToString(deterministic=True)
    return IdempotencyKey(request.request_id, hashlib.blake2b(encoded, digest_size=_FINGERPRINT_BYTES).digest())


def find_applied(key: IdempotencyKey | None, applied: Applied) -> AppliedRequest | None:
    """What the first call produced, if this call repeats it."""
    if key is None:
        return None
    for earlier in applied:
        if earlier.request_id == key.request_id:
            if earlier.fingerprint != key.fingerprint:
                raise InvalidArgument((FieldViolation("request_id", "was used before for another call"),))
            return earlier
    return None


def remember(
    key: IdempotencyKey | None,
    action: Action,
    revision: int,
    earlier: Applied,
    now_us: int,
    plan_effect: ScheduledAction.PlanEffect = ScheduledAction.PLAN_EFFECT_UNSPECIFIED,
    *,
    cancelled_attempt: bool = False,
) -> Action:
    """The row to store for an action that this call brings to that revision."""
    if key is not None:
        applied = AppliedRequest(
            request_id=key.request_id,
            guid=action.guid,
            revision=revision,
            etag=etag_of(action.guid, revision),
            time=timestamp(now_us),
            fingerprint=key.fingerprint,
            cancelled_attempt=cancelled_attempt,
            plan_effect=plan_effect,
        )
        earlier = (*_still_remembered(earlier, now_us), applied)
    return with_applied_requests(action, earlier) if earlier else action


def _still_remembered(applied: Applied, now_us: int) -> Applied:
    """The last few calls, and all of the last seconds: their callers may still repeat them."""
    recent_us = now_us - DELETED_RETENTION_MIN_US
    recent = sum(us_of(each.time) >= recent_us for each in applied[1 - RECENT_REQUESTS :])
    return applied[-max(recent, APPLIED_REQUESTS - 1) :]


def remember_creation(request: CreateActionRequest, action: Action, now_us: int) -> Action:
    return remember(key_of(request), action, FIRST_REVISION, (), now_us)
