"""`clepsydra audit`: the invariant, and whether every action can be read; with `--repair`, what to do about it."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from clepsydra.core.ids import Ids
from clepsydra.store.repair import Repaired, plan_repair
from clepsydra.tools import options
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.findings import Findings, look_for_findings
from clepsydra.tools.output import print_json
from clepsydra.tools.params import DURATION
from clepsydra.tools.repairing import Pace, done_in_words, plan_in_words, repair_gently
from clepsydra.tools.settings import Settings
from clepsydra.tools.stores import opened, opened_for_writing

_ONLY_WITH_REPAIR = ("dry_run", "yes", "slice_size", "pause_us")


@click.command(
    "audit",
    epilog="""\b
Examples:
  clepsydra audit
  clepsydra audit --json | jq .violations
  clepsydra audit --repair
  clepsydra audit --repair --dry-run
  clepsydra audit --repair --yes --slice 1000 --pause 1s

Every action must have exactly one row that carries its current guid, in incoming_queue or in processing_queue. This is
checked on one consistent snapshot, while schedulers and workers go on. Rows with old guids are no violation: they are
counted, and workers collect them. Exit code 1: a violation, or an action that cannot be decoded.

A repair says what it would do, asks, and does it while schedulers and workers go on: an action with no live row, or
with several, gets a new life with one row, and goes on where it was; rows that no action needs are removed. Ctrl-C
stops it after the slice it is at. Then it audits again, and that audit gives the exit code.""",
)
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Name so many violations at most.")
@click.option("--repair", is_flag=True, help="Give each action one live row again, and remove what is left over.")
@click.option("--dry-run", is_flag=True, help="With --repair: say what it would do, and do nothing.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@click.option(
    "--slice",
    "slice_size",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="With --repair: so many actions or rows at once.",
)
@click.option(
    "--pause",
    "pause_us",
    type=DURATION,
    default="10ms",
    show_default=True,
    help="With --repair: how long to wait after each slice.",
)
@options.as_json
@options.store
@options.reads_settings
def audit_command(
    settings: Settings,
    limit: int,
    repair: bool,
    dry_run: bool,
    yes: bool,
    slice_size: int,
    pause_us: int,
    as_json: bool,
) -> int:
    """Check that no action is lost: each has exactly one live row, and can be read. Or repair what is not so."""
    _refuse_contradictions(repair, as_json and not (dry_run or yes))
    before = asyncio.run(_audit(settings.store, limit))
    if not repair:
        _show(before, as_json)
        return _code(before)
    say: Callable[[str], None] = (lambda _line: None) if as_json else click.echo
    plan = plan_repair(before.audit)
    for line in (*before.lines(), plan_in_words(plan)):
        say(line)
    ended: _Ended | None = None
    if not dry_run and any(plan) and (yes or _confirmed()):
        ended = asyncio.run(_repair(settings.store, limit, Pace(slice_size, pause_us)))
        for line in ended.lines():
            say(line)
    if as_json:
        print_json({"before": before.as_dict(), "plan": plan._asdict(), **(ended.as_dict() if ended else {})})
    return _code(before) if ended is None else ended.code


def _refuse_contradictions(repair: bool, cannot_ask: bool) -> None:
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if not repair and given and param.name in _ONLY_WITH_REPAIR:
            raise click.UsageError(f"{param.opts[0]} says how to repair, and needs --repair")
    if repair and cannot_ask:
        raise click.UsageError("--repair with --json cannot ask: add --dry-run to look, or --yes to repair")


async def _audit(url: str, limit: int) -> Findings:
    async with opened(url) as store:
        return await look_for_findings(store, limit)


async def _repair(url: str, limit: int, pace: Pace) -> "_Ended":
    async with opened_for_writing(url) as store:
        repaired, stopped_by = await repair_gently(store, Ids.from_system(), pace)
        return _Ended(repaired, stopped_by, None if stopped_by else await look_for_findings(store, limit))


class _Ended(NamedTuple):
    """How a repair ended: what it did, and the audit after it; or the signal that stopped it before."""

    repaired: Repaired
    stopped_by: signal.Signals | None
    after: Findings | None

    def lines(self) -> Iterator[str]:
        yield done_in_words(self.repaired)
        if self.after is None:
            yield "Stopped before the end; the same command does the rest."
        else:
            yield from self.after.lines()

    def as_dict(self) -> dict[str, Any]:
        return {"repaired": self.repaired._asdict(), "after": self.after and self.after.as_dict()}

    @property
    def code(self) -> int:
        return 128 + self.stopped_by if self.stopped_by else _code(self.after)


def _confirmed() -> bool:
    click.echo("Repair it? [y/N] ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise Failure("nothing was repaired, for nobody answered: --yes repairs without asking", Exit.USAGE)
    return answer.strip().lower() in {"y", "yes"}


def _show(findings: Findings, as_json: bool) -> None:
    if as_json:
        print_json(findings.as_dict())
    else:
        for line in findings.lines():
            click.echo(line)


def _code(findings: Findings | None) -> int:
    return Exit.OK if findings is not None and findings.is_clean else Exit.NEGATIVE
