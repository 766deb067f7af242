"""Settings of a scheduler: defaults that work, contradictions that are refused with a sentence."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from clepsydra.core.limits import DELETED_RETENTION_DEFAULT_US, DELETED_RETENTION_MIN_US, REQUEST_BYTES
from clepsydra.scheduler.settings import SchedulerSettings


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = SchedulerSettings()

    assert settings.listen == "127.0.0.1:7070"
    assert settings.deleted_retention_us == DELETED_RETENTION_DEFAULT_US


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "localhost:65535", "[::]:7070", "[2001:db8::1]:80", "a-b.example:1"])
def test_addresses(listen: str) -> None:
    assert SchedulerSettings(listen=listen).listen == listen


@pytest.mark.parametrize("listen", ["", "localhost", ":7070", "localhost:", "a:65536", "::1:70", "a b:1", "x:y"])
def test_other_addresses_are_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match="must be host:port"):
        SchedulerSettings(listen=listen)


@pytest.mark.parametrize(
    "settings",
    [
        {"unknown": 1},
        {"batch": 0},
        {"batches_in_flight": 0},
        {"pending_items": 0},
        {"pending_bytes": REQUEST_BYTES - 1},
        {"max_concurrent_calls": 0},
        {"deleted_retention_ms": DELETED_RETENTION_MIN_US // 1000 - 1},
        {"stop_grace_ms": -1},
    ],
)
def test_what_cannot_be_right_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(settings))):
        SchedulerSettings(**settings)


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ValidationError, match="go together"):
        SchedulerSettings(tls_cert_file=Path("tls.crt"))
    with pytest.raises(ValidationError, match="go together"):
        SchedulerSettings(tls_key_file=Path("tls.key"))


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        SchedulerSettings().batch = 5
