"""The settings of a worker. Every value has a default that serves one machine well."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from clepsydra.core.limits import GRACE_MAX_US, LEASE_MAX_US, LOCK_LIFE_DEFAULT_US
from clepsydra.core.times import MILLISECOND_US


class WorkerSettings(BaseModel):
    """Contradictions are refused with a sentence when the worker starts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loops: int = Field(default=8, ge=1, le=1024, description="Sync loops: how many shards the worker can hold at once.")
    attempts: int = Field(default=2000, ge=1, le=100_000, description="Attempts in flight at once.")
    lease_ms: int = Field(
        default=7_500,
        ge=100,
        le=LEASE_MAX_US // MILLISECOND_US,
        description="An attempt's lease; longer attempts have it extended.",
    )
    grace_ms: int = Field(
        default=2_500,
        ge=100,
        le=GRACE_MAX_US // MILLISECOND_US,
        description="Time for writing an outcome, added to each lease.",
    )
    changes_ms: int = Field(
        default=500, ge=10, description="Time between looks for changes of the actions whose attempts run."
    )
    lock_life_ms: int = Field(
        default=LOCK_LIFE_DEFAULT_US // MILLISECOND_US,
        ge=100,
        description="A shard lock without a heartbeat for this long is stale.",
    )
    heartbeat_ms: int = Field(default=2_000, ge=10, description="Time between heartbeats of the shard locks.")
    horizon_ms: int = Field(default=2_000, ge=0, description="How far ahead of their time rows are read.")
    poll_min_ms: int = Field(default=20, ge=1, description="Time between reads of a shard into which actions come.")
    poll_max_ms: int = Field(default=1_000, ge=1, description="Time between reads of an idle shard without a wake-up.")
    shard_max_ms: int = Field(
        default=30_000, ge=1, description="A shard is released after this long, so that loops rotate."
    )
    page: int = Field(default=1_000, ge=1, le=10_000, description="Rows read from a shard at once.")
    batch: int = Field(default=1_000, ge=1, le=10_000, description="Rows written to the store at once.")
    drain_ms: int = Field(default=30_000, ge=0, description="How long a stopping worker waits for running attempts.")
    set_aside_ms: int = Field(
        default=300_000, ge=1, description="An action that cannot be decoded is tried again after this."
    )
    collect_page: int = Field(
        default=400, ge=1, le=100_000, description="Rows searched for old guids at once, when idle."
    )
    collect_pass_ms: int = Field(
        default=30_000, ge=1, description="Time between two searches of the same row, when idle."
    )
    http_response_bytes: int = Field(default=64 * 1024, ge=0, description="How many bytes of a response are read.")
    http_error_excerpt_bytes: int = Field(
        default=0, ge=0, le=4096, description="How much of the body of an error answer a status shows."
    )
    http_connections: int = Field(default=1000, ge=1, description="HTTP requests at once.")
    http_connections_per_host: int = Field(default=100, ge=1, description="HTTP requests to one host and port at once.")
    handler_threads: int = Field(default=32, ge=1, le=1024, description="Threads for handlers that are not coroutines.")
    handler_attempts: int = Field(default=1500, ge=1, description="Attempts of one handler at once.")

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.heartbeat_ms * 2 > self.lock_life_ms:
            raise ValueError(
                f"heartbeat_ms ({self.heartbeat_ms}) must be at most half of lock_life_ms ({self.lock_life_ms}), "
                "or one late heartbeat loses the lock"
            )
        if self.poll_min_ms > self.poll_max_ms:
            raise ValueError(f"poll_min_ms ({self.poll_min_ms}) must not exceed poll_max_ms ({self.poll_max_ms})")
        if self.lock_life_ms > self.lease_ms:
            raise ValueError(
                f"lock_life_ms ({self.lock_life_ms}) must not exceed lease_ms ({self.lease_ms}), or the work of a dead "
                "worker is not taken up within a lease"
            )
        return self

    @property
    def lease_us(self) -> int:
        return self.lease_ms * MILLISECOND_US

    @property
    def grace_us(self) -> int:
        return self.grace_ms * MILLISECOND_US
