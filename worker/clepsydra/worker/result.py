"""How an execution ended, as its target tells it."""

from dataclasses import dataclass

from clepsydra.v1.action_pb2 import Attempt


@dataclass(frozen=True, slots=True)
class Result:
    """What a target reports. `retry_after_us` is its wish, in place of the retry policy's delay."""

    outcome: Attempt.Outcome
    error: str = ""
    retryable: bool = True
    retry_after_us: int | None = None


SUCCESS = Result(Attempt.SUCCESS)


def failure(error: str, *, retryable: bool = True, retry_after_us: int | None = None) -> Result:
    return Result(Attempt.FAILURE, error, retryable, retry_after_us)
