"""The workflows of continuous integration: they fit their schema, a broken one does not, and what they call exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/ci.yml"
COMPOSE = ROOT / "deploy/compose.yaml"
CHECK = Path(sys.executable).with_name("check-jsonschema")
WORKFLOWS = "vendor.github-workflows"


def is_valid(schema: str, file: Path) -> bool:
    done = subprocess.run([CHECK, "--builtin-schema", schema, file], capture_output=True, text=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        *[(WORKFLOWS, file) for file in sorted(WORKFLOW.parent.iterdir())],
        ("custom.github-workflows-require-timeout", WORKFLOW),
        ("vendor.compose-spec", COMPOSE),
    ],
)
def test_a_file_fits_its_schema(schema: str, file: Path) -> None:
    assert is_valid(schema, file)


@pytest.mark.parametrize(
    ("schema", "file", "right", "wrong"),
    [
        (WORKFLOWS, WORKFLOW, "runs-on:", "run-on:"),
        (WORKFLOWS, WORKFLOW, "strategy:", "stratgy:"),
        (WORKFLOWS, WORKFLOW, "timeout-minutes: 15", "timeout-minutes: soon"),
        (WORKFLOWS, WORKFLOW, "permissions:\n  contents: read", "permissions:\n  contents: all"),
        (WORKFLOWS, WORKFLOW, "jobs:", "job:"),
        ("custom.github-workflows-require-timeout", WORKFLOW, "timeout-minutes: 15\n", "\n"),
        ("vendor.compose-spec", COMPOSE, "services:", "servces:"),
        ("vendor.compose-spec", COMPOSE, "ports:", "portes:"),
    ],
)
def test_a_broken_copy_does_not(schema: str, file: Path, right: str, wrong: str, tmp_path: Path) -> None:
    text = file.read_text()
    assert right in text
    broken = tmp_path / file.name
    broken.write_text(text.replace(right, wrong))
    assert not is_valid(schema, broken)


def test_every_make_target_that_a_workflow_calls_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflow = WORKFLOW.read_text()
    called = set(re.findall(r"run: make ([a-z-]+)", workflow)) | {"test"}
    called |= set(re.findall(r"target: ([a-z-]+)$", workflow, re.MULTILINE))
    assert called == {"lint", "test", "test-plain", "install", "test-postgres", "test-ydb", "wheel"}
    assert called <= targets


def test_the_workflows_cover_the_versions_that_the_project_supports() -> None:
    text = WORKFLOW.read_text()
    assert text.count('python: ["3.11", "3.12", "3.13", "3.14"]') == 2
    assert 'postgres: ["14", "15", "16", "17", "18"]' in text
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()
