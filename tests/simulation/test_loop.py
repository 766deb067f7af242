"""The loop of a run: its time is virtual, nothing real leaks in, and the dead do nothing more."""

import asyncio
import random
import socket
import sys
from collections.abc import Awaitable, Callable

import pytest

from tests.simulation.loop import Deadlock, RealWorld, VirtualLoop, run
from tests.simulation.processes import Process, State


async def _thread() -> None:
    await asyncio.to_thread(print)


async def _connection() -> None:
    await asyncio.open_connection("localhost", 7070)


async def _server() -> None:
    await asyncio.start_server(lambda reader, writer: None, "localhost", 0)


async def _socket() -> None:
    with socket.socket() as unconnected:
        await asyncio.get_running_loop().sock_connect(unconnected, ("127.0.0.1", 1))


async def _subprocess() -> None:
    await asyncio.create_subprocess_exec(sys.executable)


async def _signal() -> None:
    asyncio.get_running_loop().add_signal_handler(2, print)


async def _call_from_a_thread() -> None:
    asyncio.get_running_loop().call_soon_threadsafe(print)


@pytest.mark.parametrize(
    "leave",
    [_thread, _connection, _server, _socket, _subprocess, _signal, _call_from_a_thread],
    ids=lambda f: f.__name__,
)
def test_leaving_the_simulation_fails(leave: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        with pytest.raises((RealWorld, NotImplementedError)):
            await leave()

    run(main())


def test_time_is_virtual_and_idle_time_is_jumped_over() -> None:
    async def main() -> float:
        await asyncio.sleep(10**9)
        return asyncio.get_running_loop().time()

    assert run(main()) == 10**9


def test_who_waits_for_nothing_is_told() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(main())


def _order(seed: int) -> list[int]:
    order: list[int] = []

    async def note(number: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            order.append(number)

    async def main() -> None:
        await asyncio.gather(*map(note, range(5)))

    run(main(), random.Random(seed))
    return order


def test_a_seed_chooses_who_goes_on_next() -> None:
    assert _order(1) == _order(1)
    assert _order(1) != _order(2)


class _Scene:
    """A process that notes what it does, and would clean up after itself."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.did: list[str] = []
        self.process = Process(loop, "scene")
        self.task = self.process.start(self._live())

    async def _live(self) -> None:
        try:
            while True:
                self.did.append("step")
                await asyncio.sleep(1)
        finally:
            self.did.append("finally")


def _in_a_scene(act: Callable[[_Scene], Awaitable[None]]) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        scene = _Scene(loop)
        await act(scene)
        # What is left of it ends with the test, and not before.
        scene.process.bury()
        scene.task.cancel()
        await asyncio.wait([scene.task])
        assert scene.did[-1] == "finally"

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_killed_process_does_not_run_its_finally() -> None:
    async def act(scene: _Scene) -> None:
        await asyncio.sleep(2.5)
        scene.process.kill()
        await asyncio.sleep(100)
        assert scene.did == ["step"] * 3
        # Not even if somebody cancels what is left of it.
        scene.task.cancel()
        await asyncio.sleep(100)
        assert scene.did == ["step"] * 3

    _in_a_scene(act)


def test_a_doomed_process_dies_between_two_of_its_callbacks() -> None:
    async def act(scene: _Scene) -> None:
        deaths: list[str] = []
        scene.process.when_dead.append(lambda: deaths.append("died"))
        await asyncio.sleep(0.5)
        scene.process.doom(3)
        await asyncio.sleep(100)
        assert scene.process.state is State.DEAD
        assert deaths == ["died"]
        assert "finally" not in scene.did

    _in_a_scene(act)


def test_a_stalled_process_goes_on_where_it_was() -> None:
    async def act(scene: _Scene) -> None:
        await asyncio.sleep(0.5)
        scene.process.stall()
        await asyncio.sleep(100)
        assert scene.did == ["step"]
        scene.process.resume()
        await asyncio.sleep(0.9)
        assert scene.did == ["step"] * 2

    _in_a_scene(act)
