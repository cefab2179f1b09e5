"""The recorded behaviour is that of the pi which the interop tests run against."""

import json

import both
import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]
EXPECTED = both.CONFORMANCE / "expected"
EVERY = 7


def quick(name):
    """Scenarios that pi finishes; waiting for those it hangs on proves nothing."""
    text = (EXPECTED / f"{name}.json").read_text(encoding="utf-8")
    return '"hangs": true' not in text


def test_pi_still_answers_as_recorded(installed_pi):
    """A seventh of the scenarios, put to pi once more, gives the recorded results exactly."""
    names = [n for n in sorted(path.stem for path in both.CASES.glob("*.json")) if quick(n)][::EVERY]
    assert len(names) > 40
    requests, recorded = [], []
    for name in names:
        requests += json.loads((both.CASES / f"{name}.json").read_text(encoding="utf-8"))["requests"]
        recorded += json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))["results"]
    assert both.oracle(requests) == recorded
