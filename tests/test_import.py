"""What ``import sessiontree`` costs."""

import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "click",
    "filelock",
    "numpy",
    "platformdirs",
    "re",
    "rich",
    "sqlite3",
    "typing",
}


def modules_after(statement):
    """The names of all modules that a statement brings in, in a fresh Python."""
    script = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_brings_in_nothing_heavy():
    """Importing the package imports none of what only some callers need."""
    assert not modules_after("import sessiontree") & HEAVY


def test_manager_needs_nothing_heavy():
    """Opening, reading and appending need no more than importing does."""
    use = (
        "from sessiontree import SessionManager; s = SessionManager.in_memory('/code'); "
        "s.append_message({'role': 'user', 'content': 'hello', 'timestamp': 0}); s.get_entries()[0]; "
        "s.build_session_context()"
    )
    assert not modules_after(use) & (HEAVY - {"re"})  # orjson imports that


@pytest.mark.parametrize("name", ["sqlite3", "click", "numpy"])
def test_the_check_sees_what_is_imported(name):
    """The check itself notices each of these."""
    assert name in modules_after(f"import {name}")


def test_ctrl_c_waits_for_the_json_reader():
    """Its start-up is never interrupted, which would crash the process; the interrupt comes right after."""
    code = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "orjson.orjson":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
try:
    import sessiontree._orjson
except KeyboardInterrupt:
    print("orjson.orjson" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
