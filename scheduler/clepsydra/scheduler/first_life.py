"""The first life of an action, as it is stored: what a creation results in.

This is how any request is taken in. Those of the usual kind come to the same in fewer steps: see `usual.py`.
"""

from functools import lru_cache

from clepsydra.core.defaults import fill_in
from clepsydra.core.events import Accepted
from clepsydra.core.ids import GUID_LENGTH
from clepsydra.core.moments import END_OF_TIME_US, timestamp
from clepsydra.core.transitions import Moment, step
from clepsydra.core.validation import timing_violations
from clepsydra.core.wire import Heads
from clepsydra.scheduler.errors import InvalidArgument
from clepsydra.scheduler.replays import ETAG_GUID_LENGTH, etag_of
from clepsydra.store.port import Action
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, ScheduledAction, Spec, Status

# The revision that a creation brings about.
FIRST_REVISION = 1

_ACCEPTED = Accepted()
_UNBORN = Status()

_ID = Heads(Meta.ID_FIELD_NUMBER)
_CREATE_TIME, _UPDATE_TIME = Heads(Meta.CREATE_TIME_FIELD_NUMBER), Heads(Meta.UPDATE_TIME_FIELD_NUMBER)
_ENCODED_REVISION = Meta(revision=FIRST_REVISION).SerializeToString()
# All guids are of one length, and so are the etags of all first lives.
_GUID_HEAD = Heads(Meta.GUID_FIELD_NUMBER)[GUID_LENGTH]
_ETAG_END = etag_of("", FIRST_REVISION).encode()
_ETAG_HEAD = Heads(Meta.ETAG_FIELD_NUMBER)[ETAG_GUID_LENGTH + len(_ETAG_END)]


def first_life(given: ScheduledAction, action_id: str, guid: str, now_us: int) -> Action:
    """A function of these four alone, so that a replay can be answered alike."""
    spec = Spec()
    spec.CopyFrom(given.spec)
    status, at_us = accepted(spec, now_us)
    labels = Meta(labels=given.meta.labels).SerializeToString() if given.meta.labels else b""
    meta = encoded_meta(action_id, guid, labels, now_us)
    return Action(action_id, guid, meta, spec.SerializeToString(), status.SerializeToString(), at_us)


def accepted(spec: Spec, now_us: int) -> tuple[Status, int]:
    """Fill in what the spec leaves open, begin a life, and refuse what this moment makes impossible."""
    given_start = fill_in(spec, now_us)
    status, at_us = step(spec, _UNBORN, _ACCEPTED, Moment(now_us))
    if at_us is None or at_us >= END_OF_TIME_US or status.state != action_pb2.SCHEDULED:
        raise InvalidArgument(timing_violations(spec.schedule, given_start, now_us))
    return status, at_us


def encoded_meta(action_id: str, guid: str, encoded_labels: bytes, now_us: int) -> bytes:
    """The meta of an action that was created just now; its labels are a Meta that has nothing else."""
    assert len(guid) == GUID_LENGTH, "its head was made for that"
    named, life = action_id.encode(), guid.encode()
    identity = _ID[len(named)], named, _GUID_HEAD, life
    return b"".join((*identity, _ETAG_HEAD, life[:ETAG_GUID_LENGTH], _encoded_birth(now_us), encoded_labels))


@lru_cache(1)
def _encoded_birth(now_us: int) -> bytes:
    """What follows the guid in the etags of all actions that one batch creates, and in their metas."""
    now = timestamp(now_us).SerializeToString()
    length = len(now)
    return b"".join((_ETAG_END, _ENCODED_REVISION, _CREATE_TIME[length], now, _UPDATE_TIME[length], now))
