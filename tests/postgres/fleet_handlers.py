"""The handler of a fleet's workers: it appends a line for each execution to one file that all of them share."""

import os

from clepsydra.worker import Context, handler

FILE = "FLEET_EXECUTIONS"

_file = os.open(os.environ[FILE], os.O_APPEND | os.O_CREAT | os.O_WRONLY) if FILE in os.environ else -1


@handler("note")
async def note(_payload: bytes, context: Context) -> None:
    os.write(_file, f"{context.action_id} {context.attempt_id}\n".encode())
