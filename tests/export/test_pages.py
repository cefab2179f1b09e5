"""The exported page in a real browser."""

import time

import pytest
from browser import complaints, ready, wait
from sessiontree import SessionManager
from sessiontree.export import export_session

from .conftest import ODD, user, write_odd

OWNED = "return document.documentElement.dataset.owned ?? null"


def shown(browser, path, fragment=""):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(path.as_uri() + fragment)
    ready(browser)


@pytest.fixture
def page(browser, talk, tmp_path):
    path = tmp_path / "talk.html"
    export_session(talk, path)
    shown(browser, path)
    return browser


def count(browser, selector):
    return browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def kinds(browser):
    script = "return [...document.querySelectorAll('article')].map(a => a.className.split(' ')[0])"
    return browser.execute_script(script)


def press(browser, *keys):
    for key in keys:
        browser.execute_script(
            "dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key
        )


def look_for(browser, words, key="Enter"):
    browser.execute_script(
        "const s = document.getElementById('search'); s.value = arguments[0];"
        "s.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1]}));",
        words,
        key,
    )


def here(browser, what="dataset.id"):
    return f"document.querySelector('article.here')?.{what}"


def test_the_page_shows_the_branch_of_the_leaf(page):
    """Only the entries of the current branch are in the middle, in order."""
    assert kinds(page) == ["k-session-info", "k-user", "k-assistant", "k-user", "k-compaction"]
    assert complaints(page) == []


def test_the_tree_shows_every_entry(page, talk):
    """The side lists all branches, those that are not shown less strongly."""
    wait(page, f"document.querySelectorAll('#tree a[href]').length === {len(talk.get_entries())}")
    assert count(page, "#tree a.off") == 3


def test_markdown_and_code_are_drawn(page):
    """Emphasis is an element, and code is split into highlighted pieces."""
    assert page.find_element("css selector", ".k-user strong").text == "fail"
    assert count(page, ".k-assistant .md pre span") > 1


def test_tool_calls_are_folded(page):
    """A call is a heading until it is opened; o opens and closes what the entry at hand has."""
    assert page.execute_script("return document.querySelector('details.call').open") is False
    press(page, "j")
    wait(page, here(page))
    wait(page, "document.querySelector('details.call')")
    call = page.execute_script("return document.querySelector('.k-assistant').dataset.id")
    page.execute_script("location.hash = arguments[0]", call)
    wait(page, f"{here(page)} === '{call}'")
    press(page, "o")
    assert page.execute_script("return document.querySelector('details.call').open") is True
    press(page, "o")
    assert page.execute_script("return document.querySelector('details.call').open") is False


def test_search_finds_text_on_another_branch_and_goes_there(page):
    """A hit inside a folded tool result of another branch is opened, shown, and set off."""
    look_for(page, "needle-in-the-result")
    wait(page, "document.getElementById('found').textContent === '1 of 1'")
    wait(page, here(page, "querySelector('details').open"))
    assert "k-toolResult" in kinds(page)
    assert page.execute_script("return CSS.highlights.get('found').size") == 1


@pytest.mark.parametrize("words", ["WHY DOES IT", "print('x')", "parser.py", "start", "## goal"])
def test_search_finds_what_is_shown(page, words):
    """Text, code, arguments and labels are found, whatever their case; Markdown's own signs are not there."""
    look_for(page, words)
    wanted = "0 found" if words.startswith("#") else "1 of "
    wait(page, f"document.getElementById('found').textContent.startsWith('{wanted}')")


def test_going_through_what_was_found(browser, tmp_path):
    """Enter and n go forward, Shift+Enter and N backward, round and round."""
    session = SessionManager.in_memory("/code")
    session.append_many([user("apple" if n % 10 == 0 else "pear") for n in range(50)])
    export_session(session, tmp_path / "p.html")
    shown(browser, tmp_path / "p.html")
    look_for(browser, "apple")
    for key, number, row in (
        ("n", 2, 10),
        ("n", 3, 20),
        ("N", 2, 10),
        ("N", 1, 0),
        ("N", 5, 40),
        ("n", 1, 0),
    ):
        wait(browser, "document.getElementById('found').textContent.includes(' of 5')")
        press(browser, key)
        wait(browser, f"document.getElementById('found').textContent === '{number} of 5'")
        wait(browser, f"{here(browser, 'id')} === 'e{row}'")


def test_a_deep_link_names_an_entry_by_its_id(page, talk):
    """#id leads to the entry, on whatever branch it lies; its image is there."""
    image = next(
        e["id"]
        for e in talk.get_entries()
        if isinstance(e.get("message", {}).get("content"), list) and e["message"]["role"] == "user"
    )
    page.execute_script("location.hash = arguments[0]", f"#{image}")
    wait(page, f"{here(page)} === '{image}'")
    wait(page, here(page, "querySelector('img').naturalWidth === 1"))


def test_a_deep_link_works_from_outside(browser, talk, tmp_path):
    """An address with #id opens at the entry; headings are such links; one that leads nowhere does no harm."""
    export_session(talk, tmp_path / "p.html")
    call = next(e["id"] for e in talk.get_entries() if e.get("message", {}).get("role") == "assistant")
    shown(browser, tmp_path / "p.html", f"#{call}")
    wait(browser, f"{here(browser)} === '{call}'")
    assert browser.execute_script("return document.querySelector('article.here h2 a').hash") == f"#{call}"
    for nowhere in ("#nobody", "#e999", "#%E0%A4%A", "#e-1"):
        shown(browser, tmp_path / "p.html", nowhere)
        assert len(kinds(browser)) == 5
        assert complaints(browser) == []


def test_labels_lead_to_their_entries(page):
    """The menu lists labels; choosing one goes there. They stand in the tree and at the entry too."""
    menu = "document.getElementById('labels')"
    assert page.execute_script(f"return [...{menu}.options].map(o => o.text)") == ["Labels (1)", "start"]
    page.execute_script(f"{menu}.selectedIndex = 1; {menu}.dispatchEvent(new Event('change'))")
    wait(page, here(page, "querySelector('.label').textContent === 'start'"))
    wait(page, "document.querySelector('#tree .tag')?.textContent === 'start'")


def test_keys_move_and_switch_the_theme(page):
    """j and k move, g and G go to the ends; t changes dark to light or back; b folds the side away; ? helps."""
    for key, kind in (
        ("g", "session-info"),
        ("j", "user"),
        ("j", "assistant"),
        ("k", "user"),
        ("G", "compaction"),
    ):
        press(page, key)
        wait(page, here(page, f"className.startsWith('k-{kind} ')"))
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = page.execute_script(colour)
    press(page, "t")
    assert page.execute_script(colour) != before
    press(page, "t")
    assert page.execute_script(colour) == before
    press(page, "b")
    assert page.execute_script("return getComputedStyle(tree).visibility") == "hidden"
    press(page, "b", "?")
    assert page.execute_script("return document.getElementById('help').open") is True


def test_dark_follows_the_system_without_a_script(browser, talk, tmp_path):
    """Who prefers dark gets dark at once, from the style alone."""
    path = tmp_path / "p.html"
    export_session(talk, path)
    for preferred, wanted in (("dark", "rgb(21, 23, 26)"), ("light", "rgb(255, 255, 255)")):
        features = [{"name": "prefers-color-scheme", "value": preferred}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get("about:blank")
        browser.get(path.as_uri())
        browser.execute_script("delete document.documentElement.dataset.theme")
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == wanted
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_narrow_screen_has_the_branches_too(browser, talk, tmp_path):
    """On a phone nothing is wider than the screen, and a button brings the tree."""
    export_session(talk, tmp_path / "p.html")
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        shown(browser, tmp_path / "p.html")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.execute_script("return getComputedStyle(tree).visibility") == "hidden"
        browser.execute_script("document.getElementById('side').click()")
        wait(browser, "getComputedStyle(tree).visibility === 'visible'")
        wait(browser, "document.querySelectorAll('#tree a[href]').length > 5")
        browser.execute_script("document.querySelector('#tree a.off').click()")
        wait(browser, "getComputedStyle(tree).visibility === 'hidden'")
        wait(browser, here(browser))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_screen_that_is_turned_stays_at_the_entry(browser, tmp_path):
    """What is at the top stays there when the width changes, and so all heights."""
    session = SessionManager.in_memory("/code")
    session.append_many([user("many words " * (n % 97)) for n in range(200)])
    export_session(session, tmp_path / "p.html")
    shown(browser, tmp_path / "p.html", "#e120")
    wait(browser, f"{here(browser, 'id')} === 'e120'")
    top = "Math.abs(document.querySelector('article.here').getBoundingClientRect().top - entries.getBoundingClientRect().top)"
    wait(browser, f"{top} < 20")
    time.sleep(0.3)
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        wait(browser, "innerWidth === 390")
        wait(browser, f"{top} < 20")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    wait(browser, f"innerWidth > 1000 && {top} < 20")


def test_nothing_of_a_hostile_session_runs(browser, hostile, tmp_path):
    """No field of a session becomes a script, a handler, a live link or a request."""
    path = tmp_path / "hostile.html"
    export_session(hostile, path)
    shown(browser, path)
    seen = set()
    for at in range(len(hostile.get_entries())):
        browser.execute_script(f"location.hash = '#e{at}'")
        wait(browser, f"{here(browser, 'id')} === 'e{at}'")
        press(browser, "o")
        seen |= set(browser.execute_script("return [...document.querySelectorAll('article')].map(a => a.id)"))
        assert browser.execute_script(OWNED) is None
    assert len(seen) == len(hostile.get_entries())
    assert (
        count(browser, "main script, main iframe, main svg, main [onerror], main [onload], main [style]") == 0
    )
    links = "return [...document.querySelectorAll('a')].filter(a => !['file:', 'https:'].includes(a.protocol)).length"
    assert browser.execute_script(links) == 0
    assert count(browser, "img[src^=http]") == 0
    look_for(browser, "<script>")
    wait(browser, "document.getElementById('found').textContent.includes(' of ')")
    assert browser.execute_script(OWNED) is None
    assert complaints(browser) == []


def test_a_hostile_page_asks_for_nothing(browser, hostile, tmp_path):
    """All that the browser loads is the file itself."""
    path = tmp_path / "hostile.html"
    export_session(hostile, path)
    shown(browser, path)
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []


@pytest.mark.parametrize(
    "place",
    [
        ("</main>", "<script>document.documentElement.dataset.owned='yes'</script></main>"),
        ("</main>", "<img src=x onerror=\"document.documentElement.dataset.owned='yes'\"></main>"),
        (
            "</main>",
            '<iframe srcdoc="<script>parent.document.documentElement.dataset.owned=1</script>"></iframe></main>',
        ),
        ("<noscript>", '<a id=x href="javascript:document.documentElement.dataset.owned=1">x</a><noscript>'),
    ],
)
def test_the_policy_stops_a_script_that_somehow_got_in(browser, talk, tmp_path, place):
    """The page's Content-Security-Policy forbids every script but its own."""
    path = tmp_path / "broken.html"
    export_session(talk, path)
    old, new = place
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    browser.get("about:blank")
    browser.get(path.as_uri())
    browser.execute_script("document.getElementById('x')?.click()")
    time.sleep(0.2)
    assert browser.execute_script(OWNED) is None
    browser.get_log("browser")


def test_twenty_thousand_entries_do_not_freeze(browser, tmp_path):
    """A long session opens, and going anywhere in it, searching included, takes no long task."""
    session = SessionManager.in_memory("/code")
    text = (
        "some *words* and `code`\n\n```python\nfor x in range(10):\n    print(x, 'text')\n```\n"
        + "more text. " * 100
    )
    session.append_many([user(f"message {n}\n\n{text}") for n in range(20_000)])
    path = tmp_path / "long.html"
    export_session(session, path)
    shown(browser, path, "#e10000")
    wait(browser, f"{here(browser, 'id')} === 'e10000'")
    watch = (
        "window.longest = 0; new PerformanceObserver(list => list.getEntries().forEach("
        "e => { window.longest = Math.max(window.longest, e.duration) })).observe({entryTypes: ['longtask']})"
    )
    browser.execute_script(watch)
    for key, row in (("g", 0), ("j", 1), ("G", 19_999), ("k", 19_998)):
        press(browser, key)
        wait(browser, f"{here(browser, 'id')} === 'e{row}'")
    for _ in range(20):
        browser.execute_script("const m = document.getElementById('entries'); m.scrollTop -= m.clientHeight")
        time.sleep(0.03)
    browser.execute_script("tree.scrollTop = tree.scrollHeight / 2")
    wait(browser, "document.querySelectorAll('#tree a[href]').length > 20")
    look_for(browser, "message 77")
    wait(browser, "document.getElementById('found').textContent === '1 of 111'", 60)
    assert count(browser, "article") <= 300
    assert count(browser, "#tree a") < 200
    assert browser.execute_script("return window.longest") < 500


def test_windows_join_without_gaps_or_doubles(browser, tmp_path):
    """Scrolling up and down through a long session meets every entry once, in order, whatever its height."""
    session = SessionManager.in_memory("/code")
    session.append_many([user(f"{n}\n" * (1 + n * 7919 % 23)) for n in range(1000)])
    export_session(session, tmp_path / "p.html")
    shown(browser, tmp_path / "p.html", "#e500")
    rows = "[...document.querySelectorAll('article')].map(a => Number(a.id.slice(1)))"
    met = set()
    for by in (*(-3,) * 60, *(3,) * 60):
        browser.execute_script(
            f"const m = document.getElementById('entries'); m.scrollTop += m.clientHeight * {by}"
        )
        time.sleep(0.03)
        now = browser.execute_script(f"return {rows}")
        assert now == list(range(now[0], now[0] + len(now)))
        met |= set(now)
    assert len(met) > 500


@pytest.mark.parametrize("odd", ODD)
def test_odd_sessions_are_shown_as_far_as_they_go(browser, tmp_path, odd):
    """Cycles, orphans, doubles and values that are no entries: each can be gone to, and nothing fails."""
    path = write_odd(tmp_path / "odd.jsonl", ODD[odd])
    with SessionManager.open(path, read_only=True) as session:
        export_session(session, tmp_path / "odd.html")
    shown(browser, tmp_path / "odd.html")
    for row in range(min(len(ODD[odd]), 20)):
        browser.execute_script(f"location.hash = '#e{row}'")
        wait(browser, f"{here(browser, 'id')} === 'e{row}'")
    assert complaints(browser) == []
    assert browser.execute_script("return document.getElementById('notice')") is None
