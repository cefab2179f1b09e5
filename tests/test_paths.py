"""Paths as pi reads them, and the folders that sessions lie in."""

import os
import stat
from pathlib import Path

import pytest
from sessiontree import paths


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home folder of our own, and no variables of pi."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(paths.AGENT_DIR_VARIABLE, raising=False)
    monkeypatch.delenv(paths.SESSION_DIR_VARIABLE, raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("", ""),
        ("a/../b", "a/../b"),
        ("~", "{home}"),
        ("~/", "{home}"),
        ("~/x", "{home}/x"),
        ("~//x/../y", "{home}/y"),
        ("~user/x", "~user/x"),
        ("a/~", "a/~"),
        ("file:///w/a%20b", "/w/a b"),
        ("file://localhost/w", "/w"),
        ("file:///w/%C3%A9", "/w/é"),
        ("file:///w/../v?x#y", "/v"),
        ("file://", "/"),
        ("file:/w", "file:/w"),
        ("FILE:///w", "FILE:///w"),
    ],
)
def test_normalize_expands_home_and_file_urls_only(given, wanted, home):
    """A tilde counts only in front, user names are not expanded, other text stays as it is."""
    assert paths.normalize_path(given) == wanted.format(home=home)


@pytest.mark.parametrize("url", ["file://host/x", "file:///a%2Fb", "file:///a%2fb"])
def test_foreign_file_urls_are_refused(url):
    """A URL of another machine, or one with an encoded slash, is an error that quotes it."""
    with pytest.raises(ValueError, match="file URL") as caught:
        paths.normalize_path(url)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("/code/./x/../proj/", "/code/proj"),
        ("//code//proj", "/code/proj"),
        ("/..", "/"),
        ("proj", "/base/proj"),
        ("", "/base"),
        (" /code", "/base/ /code"),
        ("~/x", "{home}/x"),
        ("file:///w/../v", "/v"),
    ],
)
def test_resolve_is_lexical_and_absolute(given, wanted, home):
    """Dots and doubled slashes go away, relative paths start at the base."""
    assert paths.resolve_path(given, "/base") == wanted.format(home=home)


def test_resolve_follows_no_links(tmp_path):
    """A link's parent is the folder the link lies in."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    assert paths.resolve_path(tmp_path / "link" / "..") == str(tmp_path)


def test_relative_paths_start_at_the_process_directory(tmp_path, monkeypatch):
    """Without a base a relative path starts where the process is."""
    monkeypatch.chdir(tmp_path)
    assert paths.resolve_path("x") == os.path.join(os.getcwd(), "x")


def test_path_equality_is_exact_but_lexical():
    """Only the spelling of the same path is forgiven, not its case."""
    assert paths.paths_equal("/a/b/", "/a/./b")
    assert not paths.paths_equal("/a/b", "/a/B")


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/code/proj", "--code-proj--"),
        ("/code/my-proj/", "--code-my-proj--"),
        ("/", "----"),
        ("/a:b\\c", "--a-b-c--"),
        ("/x/a/b", "--x-a-b--"),
        ("/x/a-b", "--x-a-b--"),
        ("/a b/ü", "--a b-ü--"),
    ],
)
def test_folder_names_are_those_of_pi(cwd, name):
    """The leading separator goes, all other separators and colons become dashes."""
    assert paths.encode_cwd(cwd) == name


def test_agent_folder_comes_from_the_environment_or_home(home, monkeypatch):
    """The variable wins, with its tilde expanded; empty counts as not set."""
    assert paths.agent_dir() == f"{home}/.pi/agent"
    monkeypatch.setenv(paths.AGENT_DIR_VARIABLE, "")
    assert paths.agent_dir() == f"{home}/.pi/agent"
    monkeypatch.setenv(paths.AGENT_DIR_VARIABLE, "~/other")
    assert paths.agent_dir() == f"{home}/other"
    assert paths.sessions_root() == f"{home}/other/sessions"
    assert paths.default_session_dir("/w") == f"{home}/other/sessions/--w--"
    assert paths.default_session_dir("/w", "/agent") == "/agent/sessions/--w--"


def test_session_folder_variable_is_only_reported(monkeypatch, home):
    """The variable is for programs: default folders do not look at it."""
    assert paths.session_dir_from_environment() is None
    monkeypatch.setenv(paths.SESSION_DIR_VARIABLE, "~/s")
    assert paths.session_dir_from_environment() == f"{home}/s"
    assert paths.default_session_dir("/w") == f"{home}/.pi/agent/sessions/--w--"


def test_asking_for_the_path_creates_nothing(home):
    """Only get_default_session_dir creates the folder."""
    paths.default_session_dir("/w")
    assert not home.exists()


def test_created_folders_are_private_and_existing_ones_untouched(home):
    """Every folder made on the way has mode 0700 whatever the umask; one that was there keeps its mode."""
    home.mkdir(mode=0o755)
    old = os.umask(0)
    try:
        folder = paths.get_default_session_dir("/w")
        assert paths.get_default_session_dir("/w") == folder
    finally:
        os.umask(old)
    made = [home / ".pi", home / ".pi/agent", home / ".pi/agent/sessions", Path(folder)]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 4
    assert stat.S_IMODE(home.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_an_error(home):
    """A file where a folder should be made is reported as what the system says."""
    home.mkdir()
    (home / ".pi").write_text("")
    with pytest.raises(OSError) as caught:
        paths.get_default_session_dir("/w")
    assert caught.value.filename
