import os
from pathlib import Path

import both
import pi_install
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("SESSIONTREE_SHARED") or REPOSITORY.parent / "shared")


def not_at_hand(required, why):
    """Skip the test, or fail it where the environment says that what it needs must be there."""
    if os.environ.get(required, "0") not in ("", "0"):
        pytest.fail(f"{required} is set, but {why}")
    pytest.skip(why)


@pytest.fixture(scope="session")
def installed_pi():
    """The real pi; the test is skipped where it cannot be had."""
    try:
        return pi_install.find()
    except pi_install.PiUnavailableError as why:
        not_at_hand("SESSIONTREE_REQUIRE_PI", f"pi is not available: {why}")


@pytest.fixture
def pi(installed_pi):
    """A living pi process of this test."""
    process = both.PiProcess()
    yield process
    process.close()


@pytest.fixture(params=["large-session.jsonl", "before-compaction.jsonl"])
def real_session(request):
    """Two long sessions of version 1, which are not part of this repository."""
    path = SHARED / "data" / request.param
    if not path.exists():
        not_at_hand("SESSIONTREE_REQUIRE_SHARED", f"{request.param} is not at hand: set SESSIONTREE_SHARED")
    return path
