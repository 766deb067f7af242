"""Records that outlive a kill: what was torn is as good as not written, and spoils nothing else."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.history import Call, HistoryWriter, Kind, Outcome, read_history
from tests.chaos.journal import Appender, entries_in


def test_a_torn_record_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "records"
    first, second = Appender(path, synced=True), Appender(path, synced=True)
    first.append([{"n": 1}])
    with path.open("ab") as torn:
        torn.write(b'\n{"n": 2, "te')
    first.append([{"n": 3}])
    second.append([{"n": 4}])
    first.close()
    second.close()
    assert [record["n"] for record in entries_in(path)] == [1, 3, 4]


def test_what_many_threads_append_at_once_is_all_there_when_they_return(tmp_path: Path) -> None:
    path = tmp_path / "records"
    appender = Appender(path, synced=True)

    def append(n: int) -> bool:
        appender.append([{"n": n}])
        return {"n": n} in entries_in(path)

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(append, range(200)))
    appender.close()
    assert sorted(record["n"] for record in entries_in(path)) == list(range(200))


def test_no_file_holds_no_entries(tmp_path: Path) -> None:
    assert list(entries_in(tmp_path / "records")) == []


def test_a_call_without_an_end_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "history"
    ended = Call("r1", Kind.CREATE, "a", invoked_us=1, due_us=5, runs=1)
    killed = Call("r2", Kind.DELETE, "a", invoked_us=3)
    writer = HistoryWriter(path)
    writer.began()
    writer.invoked([ended, killed])
    ended.outcome, ended.ended_us, ended.guid, ended.tries = Outcome.OK, 2, "g1", 1
    writer.ended([ended])
    writer.replayed(ended, "g2")
    writer.close()
    history = read_history([path])
    assert history.beginnings == 1
    assert history.acknowledged_creations == 1
    ended.replayed_guids.append("g2")
    assert history.calls == {"r1": ended, "r2": killed}
    assert history.calls["r2"].outcome is Outcome.UNKNOWN
