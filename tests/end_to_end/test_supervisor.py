"""`--processes N`: a supervisor starts, watches and stops the processes."""

import signal

import psutil

from tests.end_to_end.conftest import Command, Start
from tests.end_to_end.processes import Process, address_in, eventually


def children_of(process: Process) -> list[psutil.Process]:
    return psutil.Process(process.pid).children()


def have_ended(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def test_schedulers_listen_on_one_address_and_workers_share_the_loops(start: Start, command: Command) -> None:
    command("init")
    scheduler = start("scheduler", "--listen", "127.0.0.1:0", "--processes", "2")
    server = address_in(scheduler.wait_for_out("listens on"))
    assert len(children_of(scheduler)) == 2
    worker = start("worker", "--processes", "2", "--name", "pair")
    locks = eventually(
        lambda: [lock["by"] for lock in command("locks", "--json").json()],
        lambda by: all(by),
    )
    assert set(locks) == {"pair-1", "pair-2"}
    assert locks.count("pair-1") == locks.count("pair-2") == 4

    for n in range(6):
        assert command("add", f"a{n}", "--log", "hello", "--server", server).code == 0
    eventually(
        lambda: [command("get", f"a{n}", "--json", "--server", server).json() for n in range(6)],
        lambda actions: all(action["status"]["state"] == "SUCCEEDED" for action in actions),
    )
    assert (worker.stop(), scheduler.stop()) == (0, 0)
    assert command("audit").code == 0


def test_a_killed_process_is_started_again(start: Start, command: Command) -> None:
    command("init")
    worker = start("worker", "--processes", "2")
    [first, second] = eventually(lambda: children_of(worker), lambda found: len(found) == 2)
    first.kill()
    worker.wait_for_event("a process has ended and is started again", code=-signal.SIGKILL)
    now = eventually(lambda: children_of(worker), lambda found: len([each for each in found if each != first]) == 2)
    assert second in now
    assert worker.stop() == 0
    assert have_ended(now)


def test_the_children_of_a_killed_supervisor_stop(start: Start, command: Command) -> None:
    command("init")
    worker = start("worker", "--processes", "2")
    found = eventually(lambda: children_of(worker), lambda found: len(found) == 2)
    worker.kill()
    eventually(lambda: have_ended(found), bool)


def test_a_second_signal_ends_all_processes_at_once(start: Start, command: Command) -> None:
    command("init")
    worker = start("worker", "--processes", "2")
    eventually(lambda: {lock["by"] for lock in command("locks", "--json").json()} - {None}, lambda by: len(by) == 2)
    found = children_of(worker)
    for child in found:
        child.suspend()
    worker.send(signal.SIGTERM)
    worker.wait_for_event("stopping: running work is finished first; a second signal ends at once")
    worker.send(signal.SIGTERM)
    assert worker.ended() == 128 + signal.SIGTERM
    eventually(lambda: have_ended(found), bool)


def test_an_error_of_all_processes_is_reported_once(start: Start, command: Command) -> None:
    worker = start("worker", "--processes", "3", "--store", "sqlite:///missing.db")
    assert worker.ended() == 5
    assert len([line for line in worker.err if "missing.db" in line]) == 1

    command("init")
    scheduler = start("scheduler", "--listen", "127.0.0.1:0", "--processes", "2")
    taken = address_in(scheduler.wait_for_out("listens on"))
    second = start("scheduler", "--listen", taken, "--processes", "2")
    assert second.ended() == 5
    assert any(f"cannot listen on {taken}" in line for line in second.err)
    alone = start("scheduler", "--listen", taken)
    assert alone.ended() == 5
