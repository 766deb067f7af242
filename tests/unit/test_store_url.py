"""Which URLs name a store, and what the others are told. What is behind a URL is for the end-to-end tests."""

from pathlib import Path

import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import OtherShards, Unusable, WrongUrl
from clepsydra.store.url import install_store, open_store, sqlite_path
from clepsydra.store.url_options import without_password


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///clepsydra.db", "clepsydra.db"),
        ("sqlite:///a/b.db", "a/b.db"),
        ("sqlite:////var/lib/a.db", "/var/lib/a.db"),
        ("sqlite:///a b%20c.db", "a b%20c.db"),
        ("sqlite:///wässer:1@2.db", "wässer:1@2.db"),
    ],
)
def test_a_sqlite_path_is_what_is_written(url: str, path: str) -> None:
    assert sqlite_path(url) == path


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite:a.db", "has no three slashes"),
        ("sqlite:/a.db", "has no three slashes"),
        ("sqlite://a.db", "has no three slashes"),
        ("sqlite://host/a.db", "has no three slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///a/", "names no file"),
        ("sqlite:////", "names no file"),
        ("sqlite:///a.db?x=y", "has a query or a fragment"),
        ("sqlite:///a.db#x", "has a query or a fragment"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///a\x00.db", "has a control character"),
        ("sqlite:///a\n.db", "has a control character"),
        ("", "is not a URL"),
        ("a.db", "is not a URL"),
        ("SQLITE:///a.db", "has the unknown scheme 'SQLITE'"),
        ("sqlite3:///a.db", "has the unknown scheme 'sqlite3': did you mean sqlite?"),
        ("redis://a", "has the unknown scheme 'redis': it can be "),
        (":", "has the unknown scheme ''"),
    ],
)
async def test_what_names_no_store(url: str, reason: str) -> None:
    for call in (open_store(url, SystemClock()), install_store(url, 1)):
        with pytest.raises(WrongUrl) as refused:
            await call
        assert reason in str(refused.value)
        assert repr(url) in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:secret@db:5432/x", "postgresql://ada:***@db:5432/x"),
        ("postgresql://:secret@db/x", "postgresql://:***@db/x"),
        ("postgresql://ada@db/x", "postgresql://ada@db/x"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("sqlite:////a/b:c@d.db", "sqlite:////a/b:c@d.db"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


async def test_an_installation_is_made_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with pytest.raises(Unusable, match=f"make one with `clepsydra init --store {url}`"):
        await open_store(url, SystemClock())
    assert await install_store(url, None) == 8
    assert await install_store(url, None) == 8
    assert await install_store(url, 8) == 8
    with pytest.raises(OtherShards, match="has 8 shards, not 9"):
        await install_store(url, 9)
    store = await open_store(url, SystemClock())
    assert store.shards == 8
    await store.close()


async def test_another_number_of_shards(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    assert await install_store(url, 3) == 3
    assert await install_store(url, None) == 3
