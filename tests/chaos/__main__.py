"""The long form: as many kills and actions as one likes, with progress and a summary.

python -m tests.chaos --kills 300 --actions 100000 --store sqlite
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.chaos.disk import limited_disk, make_disk
from tests.chaos.postgres import PostgresChaos
from tests.chaos.run import Plan, Summary, run
from tests.chaos.stores import ChaosStore, SqliteChaos


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument(
        "--kills", type=int, default=300, help="SIGKILLs, other faults come in proportion [%(default)s]"
    )
    parser.add_argument("--actions", type=int, default=100_000, help="actions to have acknowledged [%(default)s]")
    parser.add_argument("--seed", type=int, help="chooses the faults and the work; without it, any")
    parser.add_argument("--kills-only", action="store_true", help="no other fault than SIGKILL")
    parser.add_argument(
        "--limited-disk", action="store_true", help="fill the disk by a limit on files, not by mounting"
    )
    parser.add_argument("--schedulers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--folder", type=Path, help="where to put the run's own folder, which is kept if the verdict is bad"
    )
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    plan = Plan(seed, given.actions, given.kills, given.kills_only, given.schedulers, given.workers)
    _tell(f"{plan}")
    folder = Path(tempfile.mkdtemp(prefix="clepsydra-chaos-", dir=given.folder))
    store = _store(given, folder)
    summary = asyncio.run(_until_told(run(plan, folder, store, _tell)))
    if store.disk is not None:
        _tell(f"the disk was {store.disk.how}")
    _tell(str(summary))
    if summary.violations:
        _tell(f"histories, side log and logs are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


async def _until_told(running: Coroutine[Any, Any, Summary]) -> Summary:
    """SIGTERM ends it as Ctrl-C does: processes are ended and what was mounted is let go."""
    task = asyncio.ensure_future(running)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _store(given: argparse.Namespace, folder: Path) -> ChaosStore:
    if given.store == "postgres":
        return PostgresChaos(folder, disk_can_fill=not (given.kills_only or given.limited_disk))
    if given.kills_only:
        return SqliteChaos(folder)
    return SqliteChaos(folder, limited_disk if given.limited_disk else make_disk)


def _tell(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
