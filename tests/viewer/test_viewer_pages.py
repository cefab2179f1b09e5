"""The viewer's pages in a real browser."""

import json
import shutil
import sys
import time
from pathlib import Path

import pytest
from browser import complaints, ready, wait
from export.conftest import ODD, assistant, hostile, talk, user, write_odd  # noqa: F401 - fixtures
from sessiontree import SessionManager

from .conftest import Viewer

BENCHES = Path(__file__).resolve().parents[2] / "benches"
PATH = "document.documentElement.dataset"


def go(browser, address):
    browser.get("about:blank")
    browser.get(address)
    ready(browser)


def enter(browser, viewer, path=""):
    """Come in by the link, then go to a page."""
    browser.get(viewer.link)
    wait(browser, "!location.search && document.documentElement.dataset.ready === 'yes'")
    if path:
        go(browser, viewer.root + path)


def count(browser, selector):
    return browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def type_in(browser, text):
    browser.execute_script(
        "const s = document.getElementById('search'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
        text,
    )


def press(browser, *keys):
    for key in keys:
        browser.execute_script(
            "dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key
        )


def save(folder, session, name="s"):
    """Write a session in memory into a file, as it is."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.jsonl"
    lines = [json.dumps(session.get_header()), *(json.dumps(entry) for entry in session.get_entries())]
    path.write_text("\n".join(lines) + "\n")
    return path


# ---- five thousand sessions


@pytest.fixture(scope="module")
def d1(tmp_path_factory, browser):
    """D1 of the benchmarks: 5,000 sessions of 53 KB in 50 folders."""
    sys.path.insert(0, str(BENCHES))
    from generate import many_sessions

    root = tmp_path_factory.mktemp("d1")
    facts = many_sessions(root / "D1", 5000, 37_000, 50, 0.6)
    viewer = Viewer(root / "D1" / "sessions", root / "cache")
    yield viewer, facts
    viewer.close()
    shutil.rmtree(root)


def test_the_link_leads_to_the_list_and_its_token_is_gone(browser, d1):
    """The address, the history and the page hold no token; scripts cannot read the cookie."""
    viewer, _ = d1
    enter(browser, viewer)
    assert browser.current_url == viewer.root
    seen = browser.execute_script(
        "return JSON.stringify([document.cookie, document.referrer, document.documentElement.outerHTML])"
    )
    assert viewer.token not in seen
    browser.back()
    assert viewer.token not in browser.current_url
    browser.forward()
    assert complaints(browser) == []


def test_a_file_that_leads_to_the_link_leads_to_the_list(browser, d1, tmp_path):
    """So the browser is started: the cookie counts although the way began elsewhere."""
    viewer, _ = d1
    browser.delete_all_cookies()
    way = tmp_path / "way.html"
    way.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={viewer.link}">')
    browser.get(way.as_uri())
    wait(browser, f"location.href === '{viewer.root}' && {PATH}.ready === 'yes'")


def test_five_thousand_sessions_are_listed_at_once(browser, d1):
    """The first hundred are there, newest first, before the catalog has read anything; scrolling brings more."""
    viewer, _ = d1
    enter(browser, viewer)
    wait(browser, "document.getElementById('facts').textContent === '5,000 sessions'")
    assert count(browser, "#sessions li") == 100
    times = [s["modified"] for s in viewer.get("sessions", count=200).json["sessions"]]
    assert times == sorted(times, reverse=True)
    for _ in range(4):
        browser.execute_script("const m = document.querySelector('main'); m.scrollTop = m.scrollHeight")
        time.sleep(0.2)
    wait(browser, "document.querySelectorAll('#sessions li').length >= 300")
    assert complaints(browser) == []


def test_the_list_finds_by_directory_and_by_what_was_said(browser, d1):
    """Typing narrows the list; entries of all sessions are found, and a hit leads to its entry."""
    viewer, _ = d1
    wait_for_catalog(viewer)
    enter(browser, viewer)
    type_in(browser, "app-07")
    wait(browser, f"{PATH}.shown === 'app-07'")
    assert browser.execute_script("return document.getElementById('facts').textContent") == "100 sessions"
    hit = next(h for h in viewer.get("search", q="error").json if h["entry"])
    type_in(browser, "error")
    wait(browser, f"{PATH}.shown === 'error'")
    assert count(browser, "#hits li") > 0
    assert count(browser, "#hits mark") > 0
    go(browser, f"{viewer.root}s/{hit['key']}/#{hit['entry']}")
    assert wait(browser, "document.querySelector('article.here')?.dataset.id") == hit["entry"]
    assert complaints(browser) == []


def wait_for_catalog(viewer):
    until = time.monotonic() + 300
    while viewer.get("sessions", count=1).json["sessions"][0]["cost"] is None:
        assert time.monotonic() < until
        time.sleep(0.3)


def test_going_back_shows_what_was_searched(browser, d1):
    """The search is part of the address."""
    viewer, _ = d1
    enter(browser, viewer, "#q=app-07&sort=name")
    wait(browser, "document.getElementById('facts').textContent === '100 sessions'")
    assert browser.execute_script("return [search.value, sort.value]") == ["app-07", "name"]


# ---- one session


@pytest.fixture
def show(browser, serve, tmp_path):
    """Open the page of a session."""

    def show(path, fragment=""):
        viewer = serve(path.parent)
        until = time.monotonic() + 20
        while not viewer.get("sessions").json["total"] and time.monotonic() < until:
            time.sleep(0.05)
        browser.get_log("browser")
        enter(browser, viewer, viewer.session(path) + fragment)
        return viewer

    return show


def test_a_session_is_drawn_as_its_export_is(browser, show, talk, tmp_path):  # noqa: F811
    """The same entries of the branch, the same tree, Markdown, code, folds, labels."""
    show(save(tmp_path / "f", talk))
    kinds = "[...document.querySelectorAll('article')].map(a => a.className.split(' ')[0])"
    assert browser.execute_script(f"return {kinds}") == [
        "k-session-info",
        "k-user",
        "k-assistant",
        "k-user",
        "k-compaction",
    ]
    wait(browser, f"document.querySelectorAll('#tree a[href]').length === {len(talk.get_entries())}")
    assert browser.find_element("css selector", ".k-user strong").text == "fail"
    assert count(browser, ".k-assistant .md pre span") > 1
    assert browser.execute_script("return document.getElementById('labels').options[1].text") == "start"
    assert complaints(browser) == []


def test_search_in_a_session_finds_another_branch(browser, show, talk, tmp_path):  # noqa: F811
    """A hit inside a folded tool result of another branch is opened and shown."""
    show(save(tmp_path / "f", talk))
    browser.execute_script(
        "search.value = 'needle-in-the-result';"
        "search.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));"
    )
    wait(browser, "document.getElementById('found').textContent === '1 of 1'")
    wait(browser, "document.querySelector('article.here details')?.open")
    wait(browser, "document.querySelector('article.here').className.includes('k-toolResult')")


def test_images_come_by_their_own_address(browser, show, talk, tmp_path):  # noqa: F811
    """A picture is loaded when its entry is shown."""
    image = next(
        e["id"]
        for e in talk.get_entries()
        if isinstance(e.get("message", {}).get("content"), list) and e["message"]["role"] == "user"
    )
    show(save(tmp_path / "f", talk), f"#{image}")
    wait(browser, "document.querySelector('article.here img')?.naturalWidth === 1")
    assert complaints(browser) == []


def test_nothing_of_a_hostile_session_runs(browser, show, hostile, tmp_path):  # noqa: F811
    """No field becomes a script, a handler, a live link or a request, in the list, the tree, or the page."""
    viewer = show(save(tmp_path / "f", hostile))
    total = len(hostile.get_entries())
    press(browser, "g")
    seen = set()
    until = time.monotonic() + 30
    while len(seen) < total and time.monotonic() < until:
        ids = "[...document.querySelectorAll('article')].map(a => Number(a.id.slice(1)))"
        seen |= set(browser.execute_script(f"return {ids}"))
        assert browser.execute_script(f"return {PATH}.owned ?? null") is None
        odd = (
            "main script, main iframe, main svg, main [onerror], main [onload], main [style], img[src^=http]"
        )
        assert count(browser, odd) == 0
        links = "[...document.querySelectorAll('a')].filter(a => !['http:', 'https:'].includes(a.protocol))"
        assert browser.execute_script(f"return {links}.length") == 0
        browser.execute_script("const m = document.querySelector('main'); m.scrollTop += m.clientHeight")
        time.sleep(0.05)
    assert len(seen) == total
    go(browser, viewer.root)
    wait(browser, "document.querySelectorAll('#sessions li').length === 1")
    type_in(browser, "script")
    wait(browser, f"{PATH}.shown === 'script'")
    assert browser.execute_script(f"return {PATH}.owned ?? null") is None
    assert count(browser, "main script, main [onerror]") == 0
    assert [line for line in complaints(browser) if "Content Security Policy" in line] == []


def test_the_policy_stops_a_script_that_somehow_got_in(browser, show, talk, tmp_path):  # noqa: F811
    """Neither an element nor a handler that is put into the page runs."""
    show(save(tmp_path / "f", talk))
    browser.execute_script(
        "const s = document.createElement('script');"
        "s.textContent = \"document.documentElement.dataset.owned = 'yes'\"; document.body.append(s);"
        "document.querySelector('main').insertAdjacentHTML('beforeend',"
        "'<img src=x onerror=\"document.documentElement.dataset.owned=1\">')"
    )
    time.sleep(0.3)
    assert browser.execute_script(f"return {PATH}.owned ?? null") is None
    browser.get_log("browser")


@pytest.mark.parametrize("odd", ODD)
def test_odd_sessions_are_shown_as_far_as_they_go(browser, show, tmp_path, odd):
    """Cycles, orphans, doubles and values that are no entries: each can be gone to, and nothing fails."""
    show(write_odd(tmp_path / "f" / "odd.jsonl", ODD[odd]))
    for row in range(min(len(ODD[odd]), 20)):
        browser.execute_script(f"location.hash = '#e{row}'")
        wait(browser, f"document.querySelector('article.here')?.id === 'e{row}'")
    assert complaints(browser) == []
    assert browser.execute_script("return document.getElementById('notice')") is None


# ---- while it grows


def test_what_is_added_appears_and_is_followed(browser, show, tmp_path):
    """Who stands at the end stays at the end; title, count, tree and labels come along."""
    session = SessionManager.create("/code", session_dir=tmp_path / "f")
    first = session.append_message(user("begin"))
    session.append_many([user(f"line {n}\n\nmore") for n in range(50)])
    show(Path(session.get_session_file()))
    wait(browser, "document.getElementById('live').className === 'on'")
    last = session.append_message(assistant({"type": "text", "text": "freshly **said**"}))
    wait(browser, f"document.querySelector('article[data-id=\"{last}\"] strong')?.textContent === 'said'", 5)
    main = "document.querySelector('main')"
    wait(browser, f"{main}.scrollHeight - {main}.scrollTop - {main}.clientHeight < 5")
    session.append_session_info("Renamed")
    session.append_label_change(first, "the start")
    wait(browser, "document.querySelector('h1').textContent === 'Renamed'", 5)
    wait(browser, "document.getElementById('labels').options[1]?.text === 'the start'", 5)
    wait(browser, "document.getElementById('facts').textContent.endsWith('54 entries')", 5)
    assert complaints(browser) == []


def test_who_reads_further_up_is_left_there(browser, show, tmp_path):
    """What is added does not move the page of somebody who reads something else."""
    session = SessionManager.create("/code", session_dir=tmp_path / "f")
    session.append_many([user(f"line {n}\n\nmore") for n in range(300)])
    show(Path(session.get_session_file()))
    press(browser, "g")
    wait(browser, "document.querySelector('article.here')?.id === 'e0'")
    time.sleep(0.3)
    before = browser.execute_script("return document.querySelector('main').scrollTop")
    session.append_many([user(f"new {n}") for n in range(5)])
    wait(browser, "document.getElementById('facts').textContent.endsWith('305 entries')", 5)
    time.sleep(0.3)
    assert browser.execute_script("return document.querySelector('main').scrollTop") == before


def test_a_file_that_is_replaced_is_loaded_anew(browser, show, talk, tmp_path):  # noqa: F811
    """The page shows the new file, not a mixture."""
    path = save(tmp_path / "f", talk)
    show(path)
    wait(browser, "document.getElementById('live').className === 'on'")
    other = SessionManager.in_memory("/code")
    other.append_message(user("another session"))
    save(tmp_path / "g", other).replace(path)
    wait(browser, "document.querySelector('article')?.textContent.includes('another session')", 10)


# ---- long ones


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """20,000 entries of all sizes, among them texts of a megabyte."""
    session = SessionManager.create("/code", session_dir=tmp_path_factory.mktemp("long"))
    messages = [
        user(f"question {n}\n\n```python\nprint({n})\n```\n" + "words " * (n % 90)) for n in range(19_998)
    ]
    session.append_many(messages)
    session.append_message(user("x" * 1_000_000))
    session.append_message(user("the end"))
    session.close()
    return Path(session.get_session_file())


def test_twenty_thousand_entries_do_not_freeze(browser, show, long):
    """Only a window is in the page; going to both ends, to an entry and through the tree takes no long task."""
    show(long, "#e10000")
    wait(browser, "document.querySelector('article.here')?.id === 'e10000'")
    watch = (
        "window.longest = 0; new PerformanceObserver(list => list.getEntries().forEach("
        "e => { window.longest = Math.max(window.longest, e.duration) })).observe({entryTypes: ['longtask']})"
    )
    browser.execute_script(watch)
    press(browser, "g")
    wait(browser, "document.querySelector('article.here')?.id === 'e0'")
    press(browser, "G")
    wait(browser, "document.querySelector('article.here')?.id === 'e19999'")
    for place in (0.1, 0.5, 0.9):
        browser.execute_script("tree.scrollTop = tree.scrollHeight * arguments[0]", place)
        wait(browser, "document.querySelectorAll('#tree a[href]').length > 20")
    for _ in range(20):
        browser.execute_script("const m = document.querySelector('main'); m.scrollTop -= m.clientHeight")
        time.sleep(0.05)
    assert count(browser, "article") <= 300
    assert browser.execute_script("return window.longest") < 1000
    type_in(browser, "question 77")
    wait(browser, "document.getElementById('found').textContent === '111 found'", 30)


def test_a_long_text_is_shown_whole_when_asked_for(browser, show, long):
    """At first its beginning, and how long it is; a button brings the rest."""
    show(long, "#e19998")
    wait(
        browser,
        "document.querySelector('article.here button.more')?.textContent === 'Show all 1,000,000 characters'",
    )
    browser.execute_script("document.querySelector('article.here button.more').click()")
    wait(browser, "document.querySelector('article.here').textContent.length > 1000000")
    assert count(browser, "article.here button.more") == 0


def test_scrolling_up_from_the_end_meets_every_entry(browser, show, long):
    """Windows join without gaps or doubles."""
    show(long)
    ids = "[...document.querySelectorAll('article')].map(a => Number(a.id.slice(1)))"
    for _ in range(60):
        browser.execute_script("const m = document.querySelector('main'); m.scrollTop -= m.clientHeight * 3")
        time.sleep(0.03)
    rows = browser.execute_script(f"return {ids}")
    assert rows == list(range(rows[0], rows[0] + len(rows)))
    assert rows[0] < 19_900
