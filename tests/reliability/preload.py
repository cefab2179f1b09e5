"""Compiles ``faults.c`` and runs programs with it."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED_MEMORY = "/dev/shm"


class UnavailableError(Exception):
    """Faults cannot be injected here; the text says why."""


@functools.cache
def library():
    """The compiled library; it is removed when the process ends."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        raise UnavailableError("faults are injected under Linux, with a C compiler")
    folder = tempfile.TemporaryDirectory(prefix="faults")
    target = Path(folder.name) / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", str(target), str(HERE / "faults.c"), "-ldl"], check=True)
    library.keep = folder
    return target


def run(module, *arguments, timeout=600):
    """Run a module of this package under the library; what it counted, by name."""
    environment = {**os.environ, "LD_PRELOAD": str(library())}
    paths = [str(HERE.parent), *(p for p in sys.path if p)]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    if os.path.isdir(SHARED_MEMORY):
        # Whether bytes reach a disk is not what is asked here; hundreds of syncs would take minutes.
        environment["TMPDIR"] = SHARED_MEMORY
    with tempfile.TemporaryDirectory() as cache:
        environment["SESSIONTREE_CACHE_DIR"] = cache
        done = subprocess.run(
            [sys.executable, "-m", f"{__package__}.{module}", *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    if done.returncode:
        raise AssertionError(f"{module} {arguments} failed:\n{done.stdout[-500:]}\n{done.stderr[-5000:]}")
    return {name: int(count) for name, count in (text.split() for text in done.stdout.splitlines())}
