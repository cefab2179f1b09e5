"""numpy is imported when an array is asked for, and whatever goes wrong then is an ordinary error."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
{before}
from sessiontree import SessionManager
session = SessionManager.in_memory("/code")
session.append_message({{"role": "user", "content": "hello", "timestamp": 0}})
try:
    session.{call}
except BaseException as error:
    print(type(error).__name__)
"""
INTERRUPT = """
import importlib.abc
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("call", ["columns()", "path_rows()"])
@pytest.mark.parametrize(
    ("before", "error"),
    [("sys.modules['numpy'] = None", "ModuleNotFoundError"), (INTERRUPT, "KeyboardInterrupt")],
)
def test_trouble_with_numpy_is_an_error(call, before, error):
    """A missing numpy, and Ctrl-C while it is imported, are raised as they are; nothing panics."""
    script = SCRIPT.format(before=before, call=call)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == ([error], "")
