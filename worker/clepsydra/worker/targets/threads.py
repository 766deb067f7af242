"""A bounded number of threads for handlers that are not coroutines.

Python cannot stop a thread. A job that goes on after its attempt was given up keeps its thread until it returns: such a
thread is *held*. There are never more than `limit` threads, held ones included; when all of them are held, `run`
refuses at once, because waiting would only use up the time of the next attempts. Threads are daemons, so that a job
that never returns does not keep the process from ending; those of concurrent.futures would.

All counting is done in the event loop; threads only take jobs and hand back their results.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class ThreadsHeld(Exception):
    """Every thread is held by a job that outlived its attempt."""


class JobFailed(Exception):
    """A job has no result: it raised although it must not, or it was given up before it started."""


class _Job(Generic[_T]):
    __slots__ = ("done", "ended", "holds", "on_returned", "run")

    def __init__(self, run: Callable[[], _T], done: "asyncio.Future[_T]", on_returned: Callable[[], None]) -> None:
        self.run = run
        self.done = done
        self.on_returned = on_returned
        self.ended = False
        self.holds = False


class Threads:
    """To be made inside the event loop that it serves."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._free = asyncio.Semaphore(limit)
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0
        self.held = 0

    async def run(
        self, run: Callable[[], _T], on_held: Callable[[], None], on_returned: Callable[[], None] = lambda: None
    ) -> _T:
        """Run a job that does not raise in a thread, once one is free.

        If this is cancelled while it waits for a thread, the job never starts; if while the job runs, `on_held` is
        called and the job goes on, holding its thread, until it returns and `on_returned` is called.
        """
        if self.held == self._limit:
            raise ThreadsHeld
        await self._free.acquire()
        job: _Job[_T] = _Job(run, self._loop.create_future(), on_returned)
        if self._busy == self._started:
            self._start_thread()
        self._busy += 1
        self._jobs.put(job)
        try:
            return await job.done
        except asyncio.CancelledError:
            if not job.ended:
                job.holds = True
                self.held += 1
                on_held()
            raise

    def close(self) -> None:
        """End idle threads now, and the others when their jobs return."""
        for _ in range(self._started):
            self._jobs.put(None)
        self._started = 0

    def _start_thread(self) -> None:
        self._started += 1
        threading.Thread(target=self._serve, name=f"clepsydra-handler-{self._started}", daemon=True).start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            outcome = _outcome(job)
            try:
                self._loop.call_soon_threadsafe(self._end, job, outcome)
            except RuntimeError:
                # The event loop is closed: nobody waits for this job or any other.
                return
            del job, outcome  # an idle thread must not keep them alive

    def _end(self, job: _Job[_T], outcome: _T | JobFailed) -> None:
        job.ended = True
        self._busy -= 1
        self._free.release()
        if job.holds:
            self.held -= 1
            job.on_returned()
        if job.done.cancelled():
            return
        if isinstance(outcome, JobFailed):
            job.done.set_exception(outcome)
        else:
            job.done.set_result(outcome)


def _outcome(job: _Job[_T]) -> _T | JobFailed:
    if job.done.cancelled():
        return JobFailed("given up before it started")
    try:
        return job.run()
    except BaseException as error:  # it must not end the thread, whose place would be lost
        failed = JobFailed(f"{type(error).__name__} in a thread")
        failed.__cause__ = error
        return failed
