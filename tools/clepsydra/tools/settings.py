"""The configuration: one frozen model, read once. Every field has a default, an environment variable and a key.

The variable of a key is CLEPSYDRA_ and the key in capitals: `worker.lease_ms` is CLEPSYDRA_WORKER_LEASE_MS.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.worker.settings import WorkerSettings

PREFIX = "CLEPSYDRA_"

_ADDRESS = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


class NamedWorkerSettings(WorkerSettings):
    """What a worker process needs beyond its work."""

    name: str | None = Field(
        default=None, min_length=1, max_length=255, description="Its name in locks and attempts. Unset: host:pid."
    )
    handlers: str | None = Field(default=None, min_length=1, description="The module that registers Python handlers.")
    processes: int = Field(
        default=1, ge=1, le=256, description="Processes of `clepsydra worker`, which share the loops between them."
    )


class ServingSettings(SchedulerSettings):
    """What a scheduler process needs beyond its work."""

    processes: int = Field(
        default=1, ge=1, le=256, description="Processes of `clepsydra scheduler`, which listen on one address."
    )


class LogSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="What is worth a line.")
    format: Literal["auto", "text", "json"] = Field(
        default="auto", description="Lines for people, or JSON; auto: for people on a terminal, JSON elsewhere."
    )


class Settings(BaseModel):
    """Everything that can be set, for every command: each uses its part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    store: str = Field(default="sqlite:///clepsydra.db", description="Where the installation is.")
    server: str = Field(default="127.0.0.1:7070", description="The scheduler that commands talk to.")
    server_tls: bool = Field(default=False, description="Whether to talk to the scheduler through TLS.")
    server_ca_file: Path | None = Field(
        default=None, description="Trusted certificates, PEM, instead of those that come with gRPC."
    )
    call_timeout_ms: int = Field(
        default=10_000, ge=1, le=3_600_000, description="How long a command waits for the scheduler's answer."
    )
    scheduler: ServingSettings = Field(default_factory=ServingSettings)
    worker: NamedWorkerSettings = Field(default_factory=NamedWorkerSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    @field_validator("server")
    @classmethod
    def _is_an_address(cls, server: str) -> str:
        match = _ADDRESS.fullmatch(server)
        if match is None or not 0 < int(match[1]) < 65536:
            raise ValueError(f"server ({server!r}) must be host:port, such as 127.0.0.1:7070")
        return server

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.server_ca_file is not None and not self.server_tls:
            raise ValueError("server_ca_file has a meaning with server_tls alone: set that too, or leave it out")
        return self


class Setting(NamedTuple):
    """One leaf of the model."""

    # ("worker", "lease_ms")
    path: tuple[str, ...]
    annotation: Any
    default: Any
    description: str

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        return PREFIX + "_".join(self.path).upper()


def all_settings(model: type[BaseModel] = Settings, prefix: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every leaf, in the order of the model."""
    for name, field in model.model_fields.items():
        path = (*prefix, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from all_settings(field.annotation, path)
        else:
            yield Setting(path, field.rebuild_annotation(), field.get_default(), field.description or "")


SETTINGS = {setting.path: setting for setting in all_settings()}
SECTIONS = frozenset(path[0] for path in SETTINGS if len(path) > 1)
