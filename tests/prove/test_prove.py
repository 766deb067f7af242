"""`make prove` in a second: it says what it did, and how to repeat what it found."""

import pytest

from tests.interleaving.mutations import MUTATIONS
from tests.prove.__main__ import main


def test_it_finds_out_the_mutations_and_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "0.01", "--processes", "1"]) == 0
    told = capsys.readouterr().out
    assert f"mutations: {len(MUTATIONS)} of {len(MUTATIONS)} are found out" in told
    assert "0 broken promises" in told
    assert "nothing is broken" in told


def test_its_help_says_how_to_repeat_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "python -m tests.simulation --seed 17" in capsys.readouterr().out
