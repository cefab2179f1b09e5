"""The examples of docstrings run."""

import doctest
import importlib
import pkgutil

import pytest
import sessiontree

MODULES = ["sessiontree"] + [
    module.name
    for module in pkgutil.walk_packages(sessiontree.__path__, "sessiontree.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    """Every example of the module gives what it says, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found():
    """Examples are looked for where they are: a module is known to have some."""
    assert doctest.testmod(importlib.import_module("sessiontree.manager")).attempted > 5
