"""Caches of these tests are their own."""

import pytest


@pytest.fixture(autouse=True, scope="package")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
