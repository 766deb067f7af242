"""How a replayed call is recognised.

An action remembers the last few calls that carried a request id, with what they produced; its tombstone, and an action
created over that, remember them too. The fingerprint tells a replay from another call that uses the same id by mistake.
"""

import hashlib
from typing import Any, NamedTuple

from clepsydra.core.limits import APPLIED_REQUESTS
from clepsydra.core.moments import timestamp
from clepsydra.core.validation import FieldViolation
from clepsydra.scheduler.errors import InvalidArgument
from clepsydra.scheduler.records import remembered
from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import AppliedRequest

_FINGERPRINT_BYTES = 16
# So much of a guid is in an etag.
ETAG_GUID_LENGTH = 16

Applied = tuple[AppliedRequest, ...]


class CallKey(NamedTuple):
    """What a call is known by."""

    request_id: str
    fingerprint: bytes


def key_of(request: Any) -> CallKey | None:
    """None for a call without a request id: its replay is a call like any other."""
    if not request.request_id:
        return None
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("request_id")
    if "validate_only" in bare.DESCRIPTOR.fields_by_name:
        bare.ClearField("validate_only")
    # Pause and resume look the same on the wire, so the kind of call is part of the fingerprint.
    content = bare.DESCRIPTOR.full_name.encode() + b"\0" + bare.SerializeToString(deterministic=True)
    return CallKey(request.request_id, hashlib.blake2b(content, digest_size=_FINGERPRINT_BYTES).digest())


def recognised(key: CallKey | None, applied: Applied) -> AppliedRequest | None:
    """What the first call produced, if this is its replay."""
    if key is None:
        return None
    for earlier in applied:
        if earlier.request_id == key.request_id:
            if earlier.fingerprint != key.fingerprint:
                raise InvalidArgument((FieldViolation("request_id", "was used before for another call"),))
            return earlier
    return None


def etag_of(guid: str, revision: int) -> str:
    """Of two states of an action that a user brought about, no two have the same guid and revision."""
    return f"{guid[:ETAG_GUID_LENGTH]}-{revision}"


def remembering(key: CallKey | None, action: Action, revision: int, earlier: Applied, now_us: int) -> Action:
    """What to store of an action that this call has brought to that revision."""
    if key is not None:
        applied = AppliedRequest(
            request_id=key.request_id,
            guid=action.guid,
            revision=revision,
            etag=etag_of(action.guid, revision),
            time=timestamp(now_us),
            fingerprint=key.fingerprint,
        )
        earlier = (*earlier, applied)[-APPLIED_REQUESTS:]
    return remembered(action, earlier) if earlier else action
