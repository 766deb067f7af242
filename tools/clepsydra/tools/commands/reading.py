"""`clepsydra get` and `clepsydra list`: show actions as the scheduler knows them."""

from collections.abc import Iterator

import click

from clepsydra.core import limits
from clepsydra.core.clock import SystemClock
from clepsydra.core.times import duration_us, us_of
from clepsydra.tools import options
from clepsydra.tools.client import Client, connected
from clepsydra.tools.durations import exact
from clepsydra.tools.output import console, facts, message_as_dict, print_json, table
from clepsydra.tools.settings import Settings
from clepsydra.tools.times import rfc3339
from clepsydra.tools.words import attempt_in_words, recurrence_of, state_of, target_of, visible, when
from clepsydra.v1.action_pb2 import Counters, ScheduledAction
from clepsydra.v1.scheduler_pb2 import GetActionRequest, ListActionsRequest, ListActionsResponse


@click.command(
    "get",
    epilog="""\b
Examples:
  clepsydra get hello
  clepsydra get hello --json""",
)
@click.argument("action_id", metavar="ID")
@options.as_json
@options.server
@options.reads_settings
def get_command(settings: Settings, action_id: str, as_json: bool) -> None:
    """Show an action: what it does, when, and how its attempts went."""
    with connected(settings) as client:
        action = client.call("GetAction", GetActionRequest(id=action_id))
    if as_json:
        print_json(message_as_dict(action))
    else:
        console().print(facts(_facts(action, SystemClock().now_us())))


@click.command(
    "list",
    epilog="""\b
Examples:
  clepsydra list
  clepsydra list --all --json > actions.jsonl
  clepsydra list --limit 20 --page-token TOKEN

The order is stable, and is not the order of creation. --json prints one action a line.""",
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="List so many at most.")
@click.option("--all", "everything", is_flag=True, help="List all.")
@click.option("--page-token", default="", help="Go on where another list ended.")
@options.as_json
@options.server
@options.reads_settings
def list_command(settings: Settings, limit: int, everything: bool, page_token: str, as_json: bool) -> None:
    """List actions and how they stand."""
    rows = []
    next_token = ""
    with connected(settings) as client:
        now_us = SystemClock().now_us()
        for page in _pages(client, None if everything else limit, page_token):
            next_token = page.next_page_token
            for action in page.actions:
                if as_json:
                    print_json(message_as_dict(action), in_one_line=True)
                else:
                    rows.append(_row(action, now_us))
    if not as_json:
        console().print(table(["ID", "STATE", "NEXT", "RUNS", "RECURRENCE", "TARGET"], rows, right=["RUNS"]))
    if next_token:
        click.echo(f"There are more: --all, or --page-token {next_token}", err=True)


def _pages(client: Client, limit: int | None, token: str) -> Iterator[ListActionsResponse]:
    """Pages until the limit or the end is reached; the last one's token says whether there are more."""
    left = limit
    while True:
        size = limits.PAGE_SIZE_MAX if left is None else min(left, limits.PAGE_SIZE_MAX)
        page = client.call("ListActions", ListActionsRequest(page_size=size, page_token=token))
        yield page
        token = page.next_page_token
        left = None if left is None else left - len(page.actions)
        if not token or left == 0:
            return


def _row(action: ScheduledAction, now_us: int) -> list[str]:
    return [
        action.meta.id,
        state_of(action.status),
        when(action.status, now_us),
        f"{action.status.counters.runs}",
        recurrence_of(action.spec),
        target_of(action.spec),
    ]


def _facts(action: ScheduledAction, now_us: int) -> Iterator[tuple[str, str]]:
    meta, spec, status = action.meta, action.spec, action.status
    yield "id", meta.id
    yield "state", f"{state_of(status)}: {visible(status.reason)}" if status.reason else state_of(status)
    yield "next", when(status, now_us)
    yield "recurrence", recurrence_of(spec)
    yield "target", target_of(spec)
    yield "timeout", exact(duration_us(spec.attempt_timeout))
    retry = spec.retry
    yield (
        "attempts",
        f"{retry.max_attempts or 'any number'} per run, first retry after {exact(duration_us(retry.first_delay))}",
    )
    yield "counters", _counters(status.counters)
    if status.HasField("last_attempt"):
        yield "last attempt", attempt_in_words(status.last_attempt)
    if meta.labels:
        yield "labels", ", ".join(f"{key}={visible(meta.labels[key])}" for key in sorted(meta.labels))
    yield "created", rfc3339(us_of(meta.create_time))
    yield "updated", rfc3339(us_of(meta.update_time))
    yield "etag", f"{meta.etag} (revision {meta.revision})"


def _counters(counters: Counters) -> str:
    """Those that are not zero.

    >>> _counters(Counters(runs=2, succeeded_attempts=3))
    'succeeded attempts: 3, runs: 2'
    """
    return (
        ", ".join(f"{field.name.replace('_', ' ')}: {number}" for field, number in counters.ListFields()) or "none yet"
    )
