"""What is deployed: only locked packages, as a user without rights, and no port that everybody reaches."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
COMPOSE = (ROOT / "deploy/compose.yaml").read_text()
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


def test_the_image_installs_what_is_locked_and_nothing_else() -> None:
    installs = re.findall(r"^RUN .*pip install (.*)$", DOCKERFILE, re.MULTILINE)

    assert [" ".join(sorted(install.split())) for install in installs] == [
        "--no-cache-dir --require-hashes -r requirements/stores.txt",
        "--no-build-isolation --no-cache-dir --no-deps .",
    ]


def test_every_locked_package_has_a_hash() -> None:
    for name in ("run", "stores", "dev"):
        lines = (ROOT / f"requirements/{name}.txt").read_text().replace("\\\n", "").splitlines()
        assert all("--hash=sha256:" in line for line in lines if line and not line.startswith("#"))


def test_the_image_runs_as_a_user_without_rights() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]

    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE) == ["clepsydra"]
    assert last_stage.index("USER clepsydra") < last_stage.index("ENTRYPOINT")


def test_what_the_image_copies_is_all_that_it_is_given() -> None:
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]
    }

    assert IGNORED[1] == "*"
    assert {line[1:] for line in IGNORED if line.startswith("!")} == copied


def test_ports_are_published_on_this_machine_alone() -> None:
    ports = re.findall(r'^ +- "([0-9.:]+)"', COMPOSE, re.MULTILINE)

    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)
