"""Layered settings: what counts, what is refused, and that no file ever loses anything."""

import json
import os
import stat
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import _settingsfile
from sessiontree.exceptions import SettingsError
from sessiontree.settings import SETTINGS_DEFAULTS, SettingsManager, merge_settings

MODEL = {"provider": "openai", "id": "gpt-4.1"}


class Files:
    """An agent folder and a project."""

    def __init__(self, folder):
        self.agent = folder / "agent"
        self.cwd = folder / "code"
        self.path = self.agent / "settings.json"
        self.project_path = self.cwd / ".pi" / "settings.json"
        self.cwd.mkdir()

    def write(self, value, path=None):
        path = path or self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())

    def manager(self, **options):
        return SettingsManager.create(self.cwd, self.agent, **options)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.delenv("SESSIONTREE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Files(tmp_path)


def leftovers(path):
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


# ---- reading


def test_defaults_where_nothing_is_set(files):
    """No file, no folder, and nothing is created by looking."""
    settings = files.manager()
    assert settings.get_compaction_settings() == SETTINGS_DEFAULTS["compaction"]
    assert settings.get("retry.provider.maxRetryDelayMs") == 60000
    assert settings.get("no.such.thing") is None
    assert settings.get_settings() == {}
    assert not files.agent.exists()


def test_later_layers_win(files):
    """Global, project, overrides; objects are merged, lists replaced."""
    files.write({"compaction": {"reserveTokens": 1, "keepRecentTokens": 2}, "list": [1, 2]})
    files.write({"compaction": {"reserveTokens": 3}, "list": [3]}, files.project_path)
    settings = files.manager()
    assert settings.get_settings() == {"compaction": {"reserveTokens": 3, "keepRecentTokens": 2}, "list": [3]}
    settings.apply_overrides({"compaction": {"keepRecentTokens": 4}})
    settings.apply_overrides({"compaction": {"enabled": False}})
    assert settings.get_compaction_settings() == {"enabled": False, "reserveTokens": 3, "keepRecentTokens": 4}
    settings.set("list", [4], scope="project")
    assert settings.get("compaction.keepRecentTokens") == 4


def test_a_project_counts_only_if_it_is_trusted(files):
    """Its file is not even read otherwise, and never written."""
    files.write({"x": 1})
    files.write(b"{broken", files.project_path)
    settings = files.manager(project_trusted=False)
    assert (settings.get("x"), settings.get_project_settings(), settings.drain_errors()) == (1, {}, [])
    with pytest.raises(SettingsError, match="not trusted"):
        settings.set("x", 2, scope="project")
    files.write({"x": 2}, files.project_path)
    settings.set_project_trusted(True)
    assert (settings.is_project_trusted(), settings.get("x")) == (True, 2)
    settings.set_project_trusted(False)
    assert settings.get("x") == 1


def test_tool_changes_are_added_to_the_list_below():
    """Only a list of nothing but +name and -name modifies; any other replaces."""
    assert merge_settings({"defaultTools": ["a"]}, {"defaultTools": ["+b", "-a"]})["defaultTools"] == [
        "a",
        "+b",
        "-a",
    ]
    assert merge_settings({"defaultTools": ["a"]}, {"defaultTools": ["+b", "c"]})["defaultTools"] == [
        "+b",
        "c",
    ]


def test_settings_of_a_model_go_first():
    """modelOverrides are found by provider and id, whatever dots these hold."""
    settings = SettingsManager.in_memory(
        {"compaction": {"reserveTokens": 5, "modelOverrides": {"openai/gpt-4.1": {"reserveTokens": 7}}}}
    )
    assert settings.get_compaction_reserve_tokens(MODEL) == 7
    assert settings.get_compaction_reserve_tokens({"provider": "x", "id": "y"}) == 5
    assert settings.get_compaction_keep_recent_tokens(MODEL) == 20000
    key = ("compaction", "modelOverrides", "openai/gpt-4.1", "reserveTokens")
    settings.set(key, 8)
    assert settings.get(key) == 8


def test_what_is_given_out_is_a_copy():
    """Changing it changes no settings, nor the defaults."""
    settings = SettingsManager.in_memory({"a": {"b": [1]}})
    settings.get("a")["b"].append(2)
    settings.get_settings()["a"].clear()
    settings.get_global_settings().clear()
    settings.get("compaction")["enabled"] = False
    assert settings.get("a") == {"b": [1]}
    assert settings.get_compaction_enabled()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1, "-1"), (1.5, "1.5"), ("5", '"5"'), (None, "null"), ([1], r"\[1\]"), (True, "true"), (2**53, "9007199254740992"),
     (float("inf"), "Infinity"), ({}, r"\{\}")],
)  # fmt: skip
def test_a_wrong_number_is_an_error_when_it_is_read(files, value, shown):
    """It names key, value and the file it comes from; other settings can be read."""
    files.write({"compaction": {"reserveTokens": 1}})
    files.write(_settingsfile.pretty({"compaction": {"reserveTokens": value}}).encode(), files.project_path)
    if value == float("inf"):
        files.write(b'{"compaction":{"reserveTokens":1e400}}', files.project_path)
    settings = files.manager()
    with pytest.raises(
        SettingsError, match=rf"compaction\.reserveTokens is {shown}, .*code/\.pi/settings\.json"
    ) as raised:
        settings.get_compaction_settings()
    assert raised.value.key == "compaction.reserveTokens"
    assert raised.value.path == str(files.project_path)
    assert settings.get_compaction_keep_recent_tokens() == 20000


def test_other_wrong_values_are_errors_too():
    """Switches must be switches, entries of modelOverrides objects, waits numbers."""
    settings = SettingsManager.in_memory(
        {
            "compaction": {"enabled": "false", "modelOverrides": {"openai/gpt-4.1": []}},
            "retry": {"maxRetries": "3", "baseDelayMs": -1},
            "branchSummary": {"skipPrompt": 1, "reserveTokens": None},
        }
    )
    with pytest.raises(SettingsError, match=r'compaction.enabled is "false", but must be true or false$'):
        settings.get_compaction_enabled()
    with pytest.raises(
        SettingsError, match=r'modelOverrides\["openai/gpt-4.1"\] is \[\], but must be an object'
    ):
        settings.get_compaction_reserve_tokens(MODEL)
    with pytest.raises(SettingsError, match=r"retry.maxRetries"):
        settings.get_retry_settings()
    with pytest.raises(SettingsError, match=r"branchSummary.skipPrompt"):
        settings.get_branch_summary_settings()
    with pytest.raises(SettingsError, match=r"retry.baseDelayMs"):
        settings.get("retry.baseDelayMs")


@pytest.mark.parametrize(
    "text",
    [
        b"{bad",
        b"  \n",
        b'{"a":1}x',
        b"5",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 9999,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
    ],
)
def test_a_broken_file_is_reported_and_never_touched(files, text):
    """It counts as empty, the error names it, and nothing can be written until it is repaired."""
    files.write(text)
    files.write({"x": 1}, files.project_path)
    settings = files.manager()
    (problem,) = settings.drain_errors()
    assert (problem.scope, problem.path) == ("global", str(files.path))
    assert str(files.path) in str(problem.error)
    assert settings.drain_errors() == []
    assert (settings.get("x"), settings.get_compaction_enabled()) == (1, True)
    for change in (lambda: settings.set("x", 2), lambda: settings.unset("x")):
        with pytest.raises(SettingsError, match="while the file is broken"):
            change()
    assert files.path.read_bytes() == text
    settings.set("x", 3, scope="project")
    files.write({"x": 4, "y": 4})
    settings.reload()
    settings.set("y", 5)
    assert (settings.get("x"), settings.get("y"), settings.drain_errors()) == (3, 5, [])


def test_a_file_that_breaks_later_is_not_touched_either(files):
    """It is looked at again under the lock; what was read before stays in force."""
    files.write({"x": 1})
    settings = files.manager()
    for text in (b"{half", b"[1]", b"5"):
        files.write(text)
        with pytest.raises(SettingsError, match=r"settings.json"):
            settings.set("y", 2)
        assert files.path.read_bytes() == text
    assert settings.get("x") == 1
    settings.reload()
    assert settings.get("x") == 1
    assert len(settings.drain_errors()) == 1


def test_a_folder_in_place_of_the_file(files):
    """What cannot be read is a problem with a name, not a crash."""
    files.path.mkdir(parents=True)
    (problem,) = files.manager().drain_errors()
    assert "cannot read settings" in str(problem.error)


def test_half_a_file_is_read_again(files):
    """pi writes in place: a reader that comes at the wrong moment waits a little."""
    files.write(b'{"x": ')

    def finish():
        time.sleep(0.03)
        files.write({"x": 7})

    writer = threading.Thread(target=finish)
    writer.start()
    settings = files.manager()
    writer.join()
    assert (settings.get("x"), settings.drain_errors()) == (7, [])


def test_a_byte_order_mark_and_old_names(files):
    """Both are read; a change writes the new names."""
    files.write(
        b'\xef\xbb\xbf{"queueMode":"all","websockets":false,"retry":{"maxDelayMs":5},"skills":{"a":1}}'
    )
    settings = files.manager()
    settings.set("x", 1)
    assert json.loads(files.path.read_bytes()) == {
        "retry": {"provider": {"maxRetryDelayMs": 5}},
        "steeringMode": "all",
        "transport": "sse",
        "x": 1,
    }


# ---- writing


def test_a_change_touches_one_key(files):
    """All others, unknown ones too, stay with their value and place; the form is pi's."""
    files.write(
        b'{"z":{"b":1.0,"a":[],"u":"\xc3\xa9\\ud800"},"compaction":{"reserveTokens":1,"mine":{}},"a":1e21}'
    )
    files.manager().set_compaction_enabled(False)
    assert files.path.read_bytes() == (
        b'{\n  "z": {\n    "b": 1,\n    "a": [],\n    "u": "\xc3\xa9\\ud800"\n  },\n  "compaction": {\n'
        b'    "reserveTokens": 1,\n    "mine": {},\n    "enabled": false\n  },\n  "a": 1e+21\n}'
    )
    assert leftovers(files.path) == []


def test_a_change_keeps_what_others_wrote(files):
    """The file is read again before it is written."""
    files.write({"x": 1, "y": {"a": 1}})
    first, second = files.manager(), files.manager()
    first.set("x", 2)
    second.set("y.b", 3)
    first.set("z", 4)
    assert json.loads(files.path.read_bytes()) == {"x": 2, "y": {"a": 1, "b": 3}, "z": 4}
    assert first.get("y") == {"a": 1, "b": 3}


def test_a_change_keeps_the_digits_of_others(tmp_path):
    """A large integer below another key is as it was; a file with broken text is not written at all."""
    file = tmp_path / "settings.json"
    file.write_text('{"other":{"big":12345678901234567890}}')
    SettingsManager.create(tmp_path, tmp_path).set("theme", "dark")
    assert '"big": 12345678901234567890' in file.read_text()
    file.write_bytes(b'{"other":"\xff"}')
    before = file.read_bytes()
    with pytest.raises(SettingsError, match="not UTF-8"):
        SettingsManager.create(tmp_path, tmp_path).set("theme", "dark")
    assert file.read_bytes() == before


def test_unset_takes_a_key_out(files):
    """The default counts again; what is not there can be taken out as well."""
    files.write({"compaction": {"reserveTokens": 1}, "x": 5})
    settings = files.manager()
    settings.unset("compaction.reserveTokens")
    settings.unset("no.such.key")
    assert settings.get("compaction.reserveTokens") == 16384
    assert json.loads(files.path.read_bytes()) == {"compaction": {}, "x": 5}


@pytest.mark.parametrize(
    ("key", "value"),
    [("compaction.reserveTokens", -1), ("compaction.enabled", "no"), ("retry.maxRetries", 1.5), ("defaultModel", 5),
     (("compaction", "modelOverrides", "a/b.c", "keepRecentTokens"), "x")],
)  # fmt: skip
def test_a_wrong_value_is_not_written(files, key, value):
    """It is refused with the key's name, before any file is touched."""
    settings = files.manager()
    with pytest.raises(SettingsError, match=r"cannot set .* must be"):
        settings.set(key, value)
    assert not files.path.exists()


@pytest.mark.parametrize("key", ["", "a..b", (), ("a", "")])
def test_a_key_must_have_a_name(key):
    """Empty names name nothing."""
    with pytest.raises(ValueError, match="named by keys"):
        SettingsManager.in_memory().set(key, 1)


def test_a_key_below_what_is_no_object(files):
    """It names the file and what stands in the way."""
    files.write({"compaction": 5})
    with pytest.raises(SettingsError, match=r'cannot set "compaction.enabled": "compaction" is 5, no object'):
        files.manager().set("compaction.enabled", True)
    assert json.loads(files.path.read_bytes()) == {"compaction": 5}


def test_what_json_lacks_is_not_written(files):
    """The value is refused and the file stays."""
    files.write({"x": 1})
    settings = files.manager()
    with pytest.raises((TypeError, ValueError, SettingsError)):
        settings.set("x", {1, 2})
    assert json.loads(files.path.read_bytes()) == {"x": 1}
    assert settings.get("x") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
def test_links_and_modes_stay(files, tmp_path):
    """Settings that are a link to another place are written there; the mode is kept."""
    real = tmp_path / "dotfiles.json"
    files.write({"x": 1}, real)
    real.chmod(0o640)
    files.agent.mkdir()
    files.path.symlink_to(real)
    files.manager().set("x", 2)
    assert files.path.is_symlink()
    assert json.loads(real.read_bytes()) == {"x": 2}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert leftovers(real) == ["agent", "cache", "code"]


def test_a_failing_disk_leaves_the_old_file(files):
    """And no temporary one, no lock, and the settings in memory as they were."""
    resource = pytest.importorskip("resource")
    files.write({"x": 1})
    settings = files.manager()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            settings.set("x", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert json.loads(files.path.read_bytes()) == {"x": 1}
    assert settings.get("x") == 1
    assert leftovers(files.path) == []


# ---- locks


def test_pis_lock_is_waited_for(files):
    """While the lock folder is there and fresh, nothing is written."""
    files.write({"x": 1})
    lock = files.path.with_name("settings.json.lock")
    lock.mkdir()
    seen = []

    def let_go():
        time.sleep(0.15)
        seen.append(json.loads(files.path.read_bytes()))
        lock.rmdir()

    owner = threading.Thread(target=let_go)
    owner.start()
    files.manager().set("x", 2)
    owner.join()
    assert seen == [{"x": 1}]
    assert json.loads(files.path.read_bytes()) == {"x": 2}


def test_a_lock_that_is_not_let_go(files, monkeypatch):
    """After some patience there is an error, and the other's lock stays."""
    monkeypatch.setattr(_settingsfile, "_LOCK_PATIENCE_SECONDS", 0.1)
    files.write({"x": 1})
    lock = files.path.with_name("settings.json.lock")
    lock.mkdir()
    with pytest.raises(SettingsError, match="locked by another program"):
        files.manager().set("x", 2)
    assert lock.is_dir()
    assert json.loads(files.path.read_bytes()) == {"x": 1}


def test_the_lock_of_a_dead_process(files):
    """A lock that nobody has touched for ten seconds is taken over, as pi does it."""
    files.write({"x": 1})
    lock = files.path.with_name("settings.json.lock")
    lock.mkdir()
    long_ago = time.time() - 11
    os.utime(lock, (long_ago, long_ago))
    files.manager().set("x", 2)
    assert not lock.exists()
    assert files.manager().get("x") == 2


def test_without_a_cache_folder(files, tmp_path, monkeypatch):
    """Then pi's lock has to do."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    files.manager().set("x", 2)
    assert files.manager().get("x") == 2


def test_many_writers_at_once(files):
    """Processes and threads that write different keys lose none of them."""
    code = (
        "import sys; from sessiontree.settings import SettingsManager\n"
        "manager = SettingsManager.create(sys.argv[1], sys.argv[2])\n"
        "for n in range(8): manager.set(f'p{sys.argv[3]}.k{n}', n)\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(files.cwd), str(files.agent), str(number)])
        for number in range(3)
    ]
    threads = [
        threading.Thread(target=lambda t=t: [files.manager().set(f"t{t}.k{n}", n) for n in range(8)])
        for t in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    found = json.loads(files.path.read_bytes())
    assert found == {f"{kind}{n}": {f"k{k}": k for k in range(8)} for kind in "pt" for n in range(3)}
    assert leftovers(files.path) == []


# ---- the rest


def test_the_agent_folder_of_the_environment(files, monkeypatch):
    """PI_CODING_AGENT_DIR counts where no folder is given."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(files.agent))
    SettingsManager.create(files.cwd).set("x", 1)
    assert files.manager().get("x") == 1


def test_session_folder_model_and_retries(files, monkeypatch):
    """What hosts ask for by name."""
    monkeypatch.setenv("HOME", "/home/me")
    settings = files.manager()
    assert (settings.get_session_dir(), settings.get_default_model()) == (None, None)
    settings.set("sessionDir", "~/sessions")
    settings.set_default_model_and_provider("openai", "gpt-4.1")
    settings.set_retry_enabled(False)
    again = files.manager()
    assert again.get_session_dir() == "/home/me/sessions"
    assert (again.get_default_provider(), again.get_default_model()) == ("openai", "gpt-4.1")
    assert not again.get_retry_enabled()
    assert again.get_retry_settings() == {
        "enabled": False, "maxRetries": 3, "baseDelayMs": 2000, "maxAgentDelayMs": 60000,
    }  # fmt: skip
    again.flush()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
LAYERS = st.dictionaries(st.text(max_size=2), VALUES, max_size=4)


@given(LAYERS, LAYERS)
def test_merging_takes_every_value_from_one_layer(first, second):
    """A value of the upper layer counts, unless both are objects; neither layer is changed."""
    before = json.dumps([first, second])
    merged = merge_settings(first, second)
    assert set(merged) == {*first, *second}
    for key, value in merged.items():
        both = isinstance(first.get(key), dict) and isinstance(second.get(key), dict)
        wanted = merge_settings(first[key], second[key]) if both else second.get(key, first.get(key))
        assert value == wanted
    assert merge_settings(merged, second) == merged
    assert merge_settings(merged, {}) == merge_settings({}, merged) == merged
    assert json.dumps([first, second]) == before


@given(LAYERS)
def test_what_is_written_is_what_is_read(value):
    """The pretty text is JSON of the same value."""
    assert json.loads(_settingsfile.pretty(value)) == value
