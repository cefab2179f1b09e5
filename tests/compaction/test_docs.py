"""The examples in the documentation do what they say."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
import sessiontree.compaction

GUIDE = Path(__file__).parents[2] / "docs" / "compaction.md"
MODULES = ["sessiontree.settings", "sessiontree._settingslayers"] + [
    module.name
    for module in pkgutil.walk_packages(sessiontree.compaction.__path__, "sessiontree.compaction.")
]


def test_the_guide():
    """Every line after >>> gives what stands below it."""
    failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert tried > 10
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_the_docstrings(name):
    """The examples of every module run."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_everything_public_says_what_it_does():
    """Each exported function and class has a docstring."""
    for name in sessiontree.compaction.__all__:
        value = getattr(sessiontree.compaction, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_the_exported_names_are_those_imported():
    """Nothing public is left out of __all__, and nothing stands there that is not."""
    public = {
        name
        for name, value in vars(sessiontree.compaction).items()
        if not name.startswith("_") and type(value).__name__ != "module"
    }
    assert set(sessiontree.compaction.__all__) == public
