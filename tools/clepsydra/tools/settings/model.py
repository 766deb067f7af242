"""The settings of every command: one frozen model. Each field has a key, an environment variable and a default.

The variable is CLEPSYDRA_ and the key in capitals: `worker.lease_ms` is CLEPSYDRA_WORKER_LEASE_MS.
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


class WorkerProcessSettings(WorkerSettings):
    """The settings of a worker, and those of its process."""

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="The worker's name in locks and attempts. Unset: host:pid.",
    )
    handlers: str | None = Field(default=None, min_length=1, description="The module that registers Python handlers.")
    processes: int = Field(
        default=1, ge=1, le=256, description="Processes of `clepsydra worker`, which share the loops between them."
    )


class SchedulerProcessSettings(SchedulerSettings):
    """The settings of a scheduler, and those of its process."""

    processes: int = Field(
        default=1, ge=1, le=256, description="Processes of `clepsydra scheduler`, which listen on one address."
    )


class LogSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest level that is logged."
    )
    format: Literal["auto", "text", "json"] = Field(
        default="auto", description="text is for people; auto: text on a terminal, json elsewhere."
    )


class Settings(BaseModel):
    """All settings. Each command uses some of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    store: str = Field(default="sqlite:///clepsydra.db", description="The URL of the store.")
    server: str = Field(default="127.0.0.1:7070", description="The scheduler that commands connect to.")
    server_tls: bool = Field(default=False, description="Whether commands connect to the scheduler with TLS.")
    server_ca_file: Path | None = Field(
        default=None, description="Trusted CA certificates (PEM) instead of those that come with gRPC."
    )
    call_timeout_ms: int = Field(
        default=10_000, ge=1, le=3_600_000, description="How long a command waits for the scheduler's answer."
    )
    scheduler: SchedulerProcessSettings = Field(default_factory=SchedulerProcessSettings)
    worker: WorkerProcessSettings = Field(default_factory=WorkerProcessSettings)
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
            raise ValueError("server_ca_file needs server_tls: set that too, or leave server_ca_file out")
        return self


class Setting(NamedTuple):
    """One field of the model."""

    # For example ("worker", "lease_ms").
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


def _fields(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every field, nested ones included, in the order of the model."""
    for name, field in model.model_fields.items():
        path = (*prefix, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, path)
        else:
            yield Setting(path, field.rebuild_annotation(), field.get_default(), field.description or "")


SETTINGS = {setting.path: setting for setting in _fields(Settings)}
SECTIONS = frozenset(path[0] for path in SETTINGS if len(path) > 1)
