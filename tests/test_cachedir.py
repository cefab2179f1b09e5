"""Where caches lie."""

import pytest
from sessiontree._cachedir import cache_dir

platformdirs = pytest.importorskip("platformdirs")


@pytest.mark.parametrize("value", [None, "", "/somewhere", "/with blank ", "relative", "~/caches", " "])
def test_it_is_the_user_s_own_folder(monkeypatch, tmp_path, value):
    """Without our variable it is what platformdirs says."""
    monkeypatch.delenv("SESSIONTREE_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_dir() == platformdirs.user_cache_dir("sessiontree", appauthor=False)
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", "named")
    assert cache_dir() == "named"
