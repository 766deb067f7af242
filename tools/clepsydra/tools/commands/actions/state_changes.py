"""`clepsydra pause`, `resume` and `run`: three commands that differ only in the method that they call."""

from collections.abc import Sequence
from typing import Any

import click

from clepsydra.core.clock import SystemClock
from clepsydra.tools.action_ids import ids_argument
from clepsydra.tools.client import Client
from clepsydra.tools.commands.actions.each_action import (
    check_one_action,
    etag_flag,
    for_each_action,
    request_id_flag,
)
from clepsydra.tools.format.actions import format_change
from clepsydra.tools.format.json_output import print_message
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.v1.scheduler_pb2 import PauseActionRequest, ResumeActionRequest, RunActionRequest


def _state_change(name: str, method: str, request_type: type[Any], summary: str, epilog: str) -> click.Command:
    @click.command(name, help=summary, epilog=epilog)
    @ids_argument
    @etag_flag
    @request_id_flag
    @flags.as_json
    @flags.server
    @flags.with_settings
    def command(settings: Settings, action_ids: Sequence[str], etag: str, request_id: str, as_json: bool) -> int:
        check_one_action(action_ids, etag, request_id)

        def change(client: Client, action_id: str) -> None:
            action = client.call(method, request_type(id=action_id, etag=etag, request_id=request_id))
            if as_json:
                print_message(action, in_one_line=len(action_ids) > 1)
            else:
                click.echo(format_change(action, SystemClock().now_us()))

        return for_each_action(settings, action_ids, change)

    return command


pause_command = _state_change(
    "pause",
    "PauseAction",
    PauseActionRequest,
    "Pause actions until they are resumed.",
    """\b
Examples:
  clepsydra pause report
  clepsydra pause report --etag 5f1c

A paused action keeps its counters.""",
)
resume_command = _state_change(
    "resume",
    "ResumeAction",
    ResumeActionRequest,
    "Resume paused actions.",
    """\b
Examples:
  clepsydra resume report

An action continues with its next occurrence, or at once if its only occurrence has passed.""",
)
run_command = _state_change(
    "run",
    "RunAction",
    RunActionRequest,
    "Run actions now, even if they have ended.",
    """\b
Examples:
  clepsydra run report

A periodic action then continues as planned.""",
)
