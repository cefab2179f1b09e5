"""Tests may skip where something is not at hand; where it must be at hand, such a skip is a failure."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a property. HYPOTHESIS_PROFILE=slow looks longer.
settings.register_profile("fast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("slow", settings.get_profile("fast"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# A shell starts what runs in the background with Ctrl-C ignored, and our own children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What a skip says, and the variable that forbids it.
REQUIRABLE = {
    "SESSIONTREE_SHARED": "SESSIONTREE_REQUIRE_SHARED",
    "pi is not available": "SESSIONTREE_REQUIRE_PI",
    "no browser": "SESSIONTREE_REQUIRE_BROWSER",
}


def forbidden(reason):
    """The variable that forbids this skip, if one does."""
    for text, variable in REQUIRABLE.items():
        if text in reason and os.environ.get(variable):
            return variable
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        variable = forbidden(reason)
        if variable:
            report.outcome = "failed"
            report.longrepr = f"{variable} is set, but: {reason}"
    return report
