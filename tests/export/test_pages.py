"""The exported page in a real browser."""

import pytest
from sessiontree import SessionManager
from sessiontree.export import export_session

from .conftest import user


def shown(browser, path):
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"


@pytest.fixture
def page(browser, talk, tmp_path):
    path = tmp_path / "talk.html"
    export_session(talk, path)
    shown(browser, path)
    return browser


def visible(browser):
    script = "return [...document.querySelectorAll('article:not(.away)')].map(a => a.className.split(' ')[0])"
    return browser.execute_script(script)


def test_the_page_shows_the_branch_of_the_leaf(page):
    """Only the entries of the current branch are in the middle, in order."""
    assert visible(page) == ["k-session-info", "k-user", "k-assistant", "k-user", "k-compaction"]


def test_the_tree_shows_every_entry(page, talk):
    """The side lists all branches."""
    assert page.execute_script("return document.querySelectorAll('#tree a').length") == len(
        talk.get_entries()
    )


def test_markdown_and_code_are_drawn(page):
    """Emphasis is an element, and code is split into highlighted pieces."""
    assert page.find_element("css selector", ".k-user strong").text == "fail"
    assert page.execute_script("return document.querySelectorAll('.k-assistant .md pre span').length") > 1


def test_search_finds_text_on_another_branch_and_goes_there(page):
    """A hit inside a folded tool result of another branch is opened and shown."""
    page.execute_script(
        "const s = document.getElementById('search'); s.value = 'needle-in-the-result';"
        "s.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));"
    )
    assert page.find_element("id", "found").text == "1 of 1"
    assert "k-toolResult" in visible(page)
    assert page.execute_script("return document.querySelector('.k-toolResult details').open") is True


def test_a_deep_link_names_an_entry_by_its_id(page, talk):
    """#id leads to the entry, on whatever branch it lies."""
    image = next(
        e["id"]
        for e in talk.get_entries()
        if isinstance(e.get("message", {}).get("content"), list) and e["message"]["role"] == "user"
    )
    page.execute_script(f"location.hash = '#{image}'")
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert page.execute_script("return document.querySelector('article.here').dataset.id") == image
    assert page.execute_script("return document.querySelector('article.here img').naturalWidth") == 1


def test_keys_move_and_switch_the_theme(page):
    """j goes to the next entry; t changes dark to light or back."""
    before = page.execute_script("return document.documentElement.dataset.theme")
    page.execute_script(
        "for (const key of ['j', 't']) dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    )
    assert page.execute_script("return document.querySelector('article.here') !== null")
    assert page.execute_script("return document.documentElement.dataset.theme") != before


def test_nothing_of_a_hostile_session_runs(browser, hostile, tmp_path):
    """No field of a session becomes a script, a handler, a live link or a request."""
    path = tmp_path / "hostile.html"
    export_session(hostile, path)
    browser.get_log("browser")
    shown(browser, path)
    assert browser.execute_script("return document.documentElement.dataset.owned ?? null") is None
    odd = "return document.querySelectorAll('main script, main iframe, main svg, main [onerror], main [onload]').length"
    assert browser.execute_script(odd) == 0
    links = "return [...document.querySelectorAll('a')].filter(a => a.protocol === 'javascript:').length"
    assert browser.execute_script(links) == 0
    assert browser.execute_script("return document.querySelectorAll('article').length") == len(
        hostile.get_entries()
    )
    assert browser.execute_script("return document.querySelectorAll('img[src^=http]').length") == 0
    assert [line for line in browser.get_log("browser") if "Content Security Policy" in line["message"]] == []


def test_the_policy_stops_a_script_that_somehow_got_in(browser, talk, tmp_path):
    """The page's Content-Security-Policy forbids every script but its own."""
    path = tmp_path / "broken.html"
    export_session(talk, path)
    text = path.read_text().replace(
        "</main>", "<script>document.documentElement.dataset.owned='yes'</script></main>"
    )
    path.write_text(text)
    shown(browser, path)
    assert browser.execute_script("return document.documentElement.dataset.owned ?? null") is None


def test_twenty_thousand_entries_are_ready_quickly(browser, tmp_path):
    """A long session opens, and its side draws only what is in view."""
    session = SessionManager.in_memory("/code")
    session.append_many([user(f"message {n}") for n in range(20_000)])
    path = tmp_path / "long.html"
    export_session(session, path)
    shown(browser, path)
    assert browser.execute_script("return document.querySelectorAll('article').length") == 20_000
    assert browser.execute_script("return document.querySelectorAll('#tree a').length") < 200
