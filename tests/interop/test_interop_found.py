"""Requests that the fuzzer once found to differ, made small; new ones go to found.json."""

import json
from pathlib import Path

import both
import pytest

pytestmark = pytest.mark.interop
FOUND = json.loads((Path(__file__).parent / "found.json").read_text(encoding="utf-8"))


def test_what_was_found_once_agrees_now(installed_pi):
    """Every request of found.json has the same answer on both sides."""
    differing = both.compare_requests([one["request"] for one in FOUND])
    assert [(FOUND[number]["about"], *rest) for number, *rest in differing] == []
