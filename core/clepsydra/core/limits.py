"""The limits of requests, and how long the service keeps what it writes itself.

Limits of a spec are in `action/spec.py`, those of a target in `targets/`. A test compares docs/api.md with all of them.
"""

from clepsydra.core.times import HOUR_US, MINUTE_US, SECOND_US

ID_LENGTH = 255
REQUEST_ID_LENGTH = 128
ETAG_LENGTH = 64
LABELS = 64
LABEL_KEY_LENGTH = 63
LABEL_VALUE_LENGTH = 255
PAYLOAD_BYTES = 256 * 1024

BATCH_ITEMS = 1000
PAGE_SIZE_DEFAULT = 100
PAGE_SIZE_MAX = 1000
PAGE_TOKEN_LENGTH = 1024
UPDATE_MASK_PATHS = 64
REQUEST_BYTES = 16 * 1024 * 1024
# A request that is not a batch, and each item of a batch.
ITEM_BYTES = 1024 * 1024
ITEM_ENTRIES = 1000
# The headers of a call.
METADATA_BYTES = 16 * 1024

ERROR_TEXT_LENGTH = 2048
APPLIED_REQUESTS = 8
RECENT_REQUESTS = 64

# A store call may be retried for this long, and a store refuses a `put` that is older. Whatever must outlive the
# longest retry (a tombstone, the overlap of reads) outlives it with a margin.
CALL_RETRY_US = 20 * SECOND_US
DELETED_RETENTION_MIN_US = 30 * SECOND_US
DELETED_RETENTION_DEFAULT_US = HOUR_US
READ_OVERLAP_US = 30 * SECOND_US

# The lease of an attempt and the grace after it are limited, so that the row of an attempt that runs is found in a
# short range of times.
LEASE_MAX_US = 10 * MINUTE_US
GRACE_MAX_US = MINUTE_US

# A shard lock without a heartbeat for this long is stale, unless workers are set otherwise.
LOCK_LIFE_DEFAULT_US = 6 * SECOND_US
