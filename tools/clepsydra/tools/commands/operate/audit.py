"""`clepsydra audit`: checks that no action is lost, and repairs what it finds if asked."""

import asyncio
import sys
from collections.abc import Callable

import click
from click.core import ParameterSource

from clepsydra.store.repair import plan_repair
from clepsydra.tools.commands.operate.audit_store import Pace, RepairReport, audit_store, repair_store
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.fields.types import DURATION
from clepsydra.tools.format.audit_report import AuditReport, format_plan
from clepsydra.tools.format.json_output import print_json
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings

_REPAIR_PARAMETERS = ("dry_run", "yes", "slice_size", "pause_us")


@click.command(
    "audit",
    epilog="""\b
Examples:
  clepsydra audit
  clepsydra audit --json | jq .violations
  clepsydra audit --repair
  clepsydra audit --repair --dry-run
  clepsydra audit --repair --yes --slice 1000 --pause 1s

Every action must have exactly one row with its current guid, in incoming_queue or in processing_queue. The audit checks
this in one consistent snapshot, while schedulers and workers run. Rows with old guids are no violation: the audit
counts them, and workers delete them. Exit code 1: a violation, or an action that cannot be decoded.

A repair shows its plan, asks, and works while schedulers and workers run. An action with no live row, or with more than
one, gets a new life with one row and continues where it was. Rows that no action needs are removed. Ctrl-C stops the
repair after its current slice. At the end it audits again, and that audit gives the exit code.""",
)
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="The most violations to name.")
@click.option("--repair", is_flag=True, help="Give each action one live row, and remove the rows that no action needs.")
@click.option("--dry-run", is_flag=True, help="With --repair: show the plan and change nothing.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@click.option(
    "--slice",
    "slice_size",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="With --repair: the number of actions or rows in one transaction.",
)
@click.option(
    "--pause",
    "pause_us",
    type=DURATION.parameter,
    default="10ms",
    show_default=True,
    help="With --repair: the pause after each slice.",
)
@flags.as_json
@flags.store
@flags.with_settings
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
    """Check that no action is lost: each has exactly one live row, and can be decoded. Or repair the store."""
    _refuse_contradictions(repair, cannot_ask=as_json and not (dry_run or yes))
    before = asyncio.run(audit_store(settings.store, limit))
    if not repair:
        _print_report(before, as_json)
        return _exit_code(before)
    echo: Callable[[str], None] = (lambda _line: None) if as_json else click.echo
    plan = plan_repair(before.audit)
    for line in (*before.lines(), format_plan(plan)):
        echo(line)
    done: RepairReport | None = None
    if not dry_run and any(plan) and (yes or _confirm()):
        done = asyncio.run(repair_store(settings.store, limit, Pace(slice_size, pause_us)))
        for line in done.lines():
            echo(line)
    if as_json:
        print_json({"before": before.as_dict(), "plan": plan._asdict(), **(done.as_dict() if done else {})})
    return _exit_code(before) if done is None else done.exit_code


def _refuse_contradictions(repair: bool, *, cannot_ask: bool) -> None:
    context = click.get_current_context()
    for param in context.command.params:
        is_given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if not repair and is_given and param.name in _REPAIR_PARAMETERS:
            raise click.UsageError(f"{param.opts[0]} says how to repair, and needs --repair")
    if repair and cannot_ask:
        raise click.UsageError("--repair with --json cannot ask: add --dry-run to look, or --yes to repair")


def _confirm() -> bool:
    click.echo("Repair it? [y/N] ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise Failure("nothing was repaired, because nobody answered: --yes repairs without asking", Exit.USAGE)
    return answer.strip().lower() in {"y", "yes"}


def _print_report(report: AuditReport, as_json: bool) -> None:
    if as_json:
        print_json(report.as_dict())
    else:
        for line in report.lines():
            click.echo(line)


def _exit_code(report: AuditReport) -> int:
    return Exit.OK if report.is_clean else Exit.NEGATIVE
