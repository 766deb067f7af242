"""The settings of a scheduler. Every value has a default that serves one machine well."""

import re
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from clepsydra.core.limits import DELETED_RETENTION_DEFAULT_US, DELETED_RETENTION_MIN_US, REQUEST_BYTES
from clepsydra.core.times import MILLISECOND_US

_ADDRESS = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")


class SchedulerSettings(BaseModel):
    """Contradictions are refused with a sentence when the scheduler starts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: str = Field(
        default="127.0.0.1:7070", description="Host and port to listen on; port 0 takes any that is free."
    )
    tls_cert_file: Path | None = Field(default=None, description="The server's certificate chain, PEM. Unset: no TLS.")
    tls_key_file: Path | None = Field(default=None, description="The key of the certificate, PEM.")
    max_concurrent_calls: int = Field(default=2_000, ge=1, le=100_000, description="Calls in progress at once.")
    max_connections: int = Field(default=2_000, ge=1, le=100_000, description="Connections at once.")
    max_calls_per_connection: int = Field(
        default=128, ge=10, le=100_000, description="Calls of one connection at once; gRPC refuses further ones."
    )
    unfinished_calls: int = Field(
        default=1_000, ge=1, le=100_000, description="Calls at once whose request is still on its way."
    )
    unfinished_bytes: int = Field(
        default=64 * 1024 * 1024, ge=REQUEST_BYTES, description="What has come of such requests, by size."
    )
    receive_timeout_ms: int = Field(
        default=30_000, ge=100, le=3_600_000, description="How long a request may take to come."
    )
    batch: int = Field(default=1_000, ge=1, le=10_000, description="Changes written to the store at once.")
    batch_bytes: int = Field(default=4 * 1024 * 1024, ge=1, description="A batch of this size takes no more changes.")
    batches_in_flight: int = Field(
        default=2, ge=1, le=64, description="Batches in progress at once, for writes and for reads."
    )
    pending_items: int = Field(
        default=20_000, ge=1, description="Changes that wait or are being written; further ones are refused."
    )
    pending_bytes: int = Field(default=64 * 1024 * 1024, ge=REQUEST_BYTES, description="The same, by size.")
    deleted_retention_ms: int = Field(
        default=DELETED_RETENTION_DEFAULT_US // MILLISECOND_US,
        ge=DELETED_RETENTION_MIN_US // MILLISECOND_US,
        le=365 * 24 * 3600 * 1000,
        description="How long a deleted action is kept, so that repeated calls are recognised.",
    )
    stop_grace_ms: int = Field(
        default=10_000, ge=0, description="How long a stopping scheduler may take to finish accepted calls."
    )

    @field_validator("listen")
    @classmethod
    def _is_an_address(cls, listen: str) -> str:
        match = _ADDRESS.fullmatch(listen)
        if match is None or int(match["port"]) > 65535:
            raise ValueError(f"listen ({listen!r}) must be host:port, such as 127.0.0.1:7070 or [::]:7070")
        return listen

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together: give both, or neither")
        return self

    @property
    def deleted_retention_us(self) -> int:
        return self.deleted_retention_ms * MILLISECOND_US
