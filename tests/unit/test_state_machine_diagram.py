"""The diagram in the docs is the one that the code draws. That it is complete is shown by the exhaustive test."""

import subprocess
import sys
from pathlib import Path

from clepsydra.core.action.diagram import NOWHERE, arrows, markdown
from clepsydra.core.action.state_machine import ALLOWED_STATES
from clepsydra.v1.action_pb2 import State

PAGE = Path(__file__).parents[2] / "docs" / "state-machine.md"


def test_the_page_shows_what_the_code_draws() -> None:
    assert markdown() in PAGE.read_text(), (
        "docs/state-machine.md is out of date: replace its diagrams by the output of "
        "python -m clepsydra.core.action.diagram"
    )


def test_the_module_prints_the_diagrams() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "clepsydra.core.action.diagram"], check=True, capture_output=True, text=True
    )
    assert printed.stdout == markdown()


def test_every_event_is_drawn_from_every_state_in_which_it_has_a_meaning() -> None:
    drawn = {(event, source) for (source, _), events in arrows().items() for event in events}
    assert drawn == {
        (event.__name__, State.Name(state) if state else NOWHERE)
        for event, states in ALLOWED_STATES.items()
        for state in states
    }


def test_the_page_explains_every_state_and_every_event() -> None:
    page = PAGE.read_text()
    for state in State.keys()[1:]:
        assert f"| `{state}` |" in page, state
    for event in ALLOWED_STATES:
        assert f"| `{event.__name__}` |" in page, event.__name__
