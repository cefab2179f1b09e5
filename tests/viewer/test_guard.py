"""Who is let in, and what every answer forbids."""

import pytest
from sessiontree import SessionManager

from .conftest import Viewer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded") / "sessions"
    session = SessionManager.create("/code", session_dir=folder)
    session.append_message({"role": "user", "content": "hello", "timestamp": 0})
    session.close()
    return folder


@pytest.fixture(scope="module")
def viewer(folder):
    viewer = Viewer(folder, folder.parent / "cache")
    yield viewer
    viewer.close()


def paths(viewer, folder):
    file = next(folder.iterdir())
    below = ["", "sessions", "search?q=x", "events", "assets/page.js", viewer.session(file), "nothing"]
    return [viewer.place + path for path in below] + ["/", "/favicon.ico", "/s/x"]


def test_without_the_token_nothing_is_shown(viewer, folder):
    """Every path, also of what does not exist, answers 403 and the same text."""
    answers = [viewer.raw(path) for path in paths(viewer, folder)]
    assert {answer.status for answer in answers} == {403}
    assert len({answer.body for answer in answers}) == 1


@pytest.mark.parametrize("given", ["x", "", "é", "%FF", "sessiontree", "A" * 43])
def test_a_wrong_token_is_none(viewer, given):
    """Neither in the link nor as a cookie does another text help."""
    assert viewer.raw(f"{viewer.place}?token={given.encode().hex() if given == 'é' else given}").status == 403
    assert viewer.raw(viewer.place, cookie=f"sessiontree={given}".encode().decode("latin-1")).status == 403


def test_the_token_works_at_its_place_only(viewer):
    """The link enters by one address; elsewhere the token in an address does nothing."""
    assert viewer.raw(f"{viewer.place}?token={viewer.token}").status == 200
    assert viewer.raw(f"{viewer.place}sessions?token={viewer.token}").status == 403
    assert viewer.raw(f"/?token={viewer.token}").status == 403
    assert viewer.raw("/", cookie=f"sessiontree={viewer.token}").status == 403


def test_the_link_gives_a_cookie_that_only_the_browser_has(viewer):
    """HttpOnly, SameSite=Strict, for this viewer's place; and the page it gives leads away from the link."""
    answer = viewer.raw(f"{viewer.place}?token={viewer.token}")
    cookie = answer.headers["set-cookie"].lower()
    assert f"sessiontree={viewer.token}".lower() in cookie
    assert {"httponly", "samesite=strict", f"path={viewer.place}"} <= {p.strip() for p in cookie.split(";")}
    assert b"hello" not in answer.body
    assert b'content="0;url=./"' in answer.body
    assert viewer.get("sessions").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil",
        "",
        "localhost.evil",
        "[::1]",
    ],
)
def test_another_name_of_this_machine_is_sent_away(viewer, host):
    """A website that points its name here (DNS rebinding) gets nothing, not even with the token."""
    answer = viewer.raw(viewer.place, host=host, cookie=f"sessiontree={viewer.token}")
    assert answer.status == 400
    assert b"<" not in answer.body


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9000", "LOCALHOST"])
def test_this_machine_may_be_called_by_its_own_names(viewer, host):
    """Any port: it may be forwarded."""
    assert viewer.raw(viewer.place, host=host, cookie=f"sessiontree={viewer.token}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(viewer, method):
    """Only methods that read are answered."""
    cookie = f"sessiontree={viewer.token}"
    assert viewer.raw(viewer.place, method=method, cookie=cookie).status == 405


def test_every_answer_forbids_what_it_can(viewer, folder):
    """Policy, types, referrer and caching are told in all answers, refusals included."""
    file = next(folder.iterdir())
    answers = [viewer.raw("/"), viewer.raw("/", host="evil.example"), viewer.get("nothing")]
    answers += [viewer.get(path) for path in ("", "sessions", "assets/page.js", "assets/icon.svg")]
    answers += [viewer.get(viewer.session(file)), viewer.get(viewer.session(file) + "entries")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("key", ["../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "x", "0" * 24])
def test_no_request_names_a_file(viewer, key, folder):
    """Only keys of sessions on the list are answered; a path is none, even that of a session."""
    file = next(folder.iterdir())
    for asked in (key, str(file), str(file).replace("/", "%2F")):
        assert viewer.get(f"s/{asked}/").status == 404
    assert viewer.get(f"assets/{key}").status == 404


def test_it_listens_on_this_machine_alone(viewer):
    """The socket is bound to 127.0.0.1."""
    import socket

    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        with socket.socket() as other:
            other.settimeout(2)
            assert other.connect_ex((address, viewer.port)) != 0
    with socket.socket() as same:
        assert same.connect_ex(("127.0.0.1", viewer.port)) == 0
