"""The command, and the data that its pages ask for."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sessiontree import SessionManager

from .conftest import PROGRAM, SRC


def user(text):
    return {"role": "user", "content": text, "timestamp": 0}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "sessions"


@pytest.fixture
def session(folder):
    session = SessionManager.create("/code/shop", session_dir=folder)
    session.append_message(user("count the apples"))
    return session


def listed(viewer, count=1, seconds=20, **query):
    until = time.monotonic() + seconds
    while True:
        page = viewer.get("sessions", **query).json
        if page["total"] >= count or time.monotonic() > until:
            return page
        time.sleep(0.05)


def opened(viewer, session):
    """The place of a session's page, and where its leaf stands."""
    listed(viewer)
    at = viewer.session(session.get_session_file())
    return at, viewer.get(at + "place").json


def ask(viewer, path):
    """A request as bytes, with the token."""
    head = (
        f"GET {viewer.place}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: sessiontree={viewer.token}\r\n\r\n"
    )
    return head.encode()


def test_ctrl_c_ends_it_at_once_and_cleanly(serve, session, folder):
    """With a page open, it ends with code 0 and says nothing."""
    viewer = serve(folder)
    at, _ = opened(viewer, session)
    with socket.create_connection(("127.0.0.1", viewer.port)) as stream:
        stream.sendall(ask(viewer, at + "events"))
        assert b"text/event-stream" in stream.recv(4096)
        began = time.monotonic()
        assert viewer.end() == (0, "")
        assert time.monotonic() - began < 5


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": SRC}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )


def test_a_port_in_use_is_one_clear_line(folder):
    """It names the port and what to do, and exits with 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port), "--session-dir", str(folder), "--no-open")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert f"port {port} of 127.0.0.1 is in use" in done.stderr
    assert "--port" in done.stderr


def test_a_port_can_be_chosen_and_taken_again(serve, session, folder):
    """--port is the port, also right after the viewer before has ended."""
    first = serve(folder)
    port = first.port
    opened(first, session)
    first.end()
    assert serve(folder, "--port", str(port)).port == port


def test_the_browser_is_not_told_the_token(folder, tmp_path):
    """What it is started with is a file for its user alone, which leads to the link and goes at the end."""
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nf="${{1#file://}}"; stat -c %a "$f" > {told}.new; echo "$1" >> {told}.new\n'
        f'cat "$f" >> {told}.new; mv {told}.new {told}\n'
    )
    browser.chmod(0o755)
    environment = {
        **os.environ,
        "PYTHONPATH": SRC,
        "BROWSER": f"{browser} %s",
        "SESSIONTREE_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", PROGRAM, "serve", "--open", "--session-dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        link = process.stdout.readline().strip()
        until = time.monotonic() + 20
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    mode, argument, page = told.read_text().split("\n", 2)
    assert mode == "600"
    assert link.partition("token=")[2] not in argument
    assert link in page
    assert not Path(argument.removeprefix("file://")).exists()


def test_what_is_missing_is_named(monkeypatch, capsys, folder):
    """Without its libraries the command says in a line how to get them."""
    from sessiontree.cli import main

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", "--session-dir", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "sessiontree[serve]" in err
    assert len(err.splitlines()) == 1


def test_without_a_catalog_there_is_the_list(serve, session, folder, tmp_path):
    """Where the cache folder cannot be used, sessions are listed and opened, and it says what is missing."""
    (tmp_path / "cache").write_text("no folder")
    viewer = serve(folder)
    at, place = opened(viewer, session)
    assert place["row"] == 0
    until = time.monotonic() + 20
    while not (trouble := viewer.get("sessions").json["trouble"]) and time.monotonic() < until:
        time.sleep(0.05)
    assert "search is not available" in trouble
    assert viewer.get("search", q="apples").status == 500
    assert viewer.get(at).status == 200
    assert viewer.end()[0] == 0


def test_the_list_can_be_searched_and_sorted(serve, session, folder):
    """All words must occur in name, first words or directory; texts are found through the catalog."""
    other = SessionManager.create("/code/bank", session_dir=folder)
    other.append_message(user("why is the ledger wrong"))
    other.append_session_info("Ledger")
    viewer = serve(folder)
    listed(viewer, 2)
    names = [s["name"] or s["words"] for s in viewer.get("sessions", sort="name").json["sessions"]]
    assert names == ["Ledger", "count the apples"]
    assert [s["cwd"] for s in listed(viewer, q="shop APPLES")["sessions"]] == ["/code/shop"]
    until = time.monotonic() + 20
    while not (hits := viewer.get("search", q="the ledg").json) and time.monotonic() < until:
        time.sleep(0.05)
    assert [(hit["role"], hit["entry"]) for hit in hits] == [("user", other.get_entries()[0]["id"])]
    assert viewer.get("search", q="!").json == []


def test_new_sessions_come_onto_the_list(serve, session, folder):
    """Whoever looks sees a session that began after the viewer."""
    viewer = serve(folder)
    listed(viewer)
    SessionManager.create("/code", session_dir=folder).append_message(user("new"))
    assert listed(viewer, 2)["total"] == 2


def test_windows_give_what_was_asked_for(serve, session, folder):
    """Lines and entries come in windows of the branch; the other branch's lines are off it."""
    first = session.get_leaf_id()
    left = [session.append_message(user(f"left {n}")) for n in range(30)]
    session.branch(first)
    right = [session.append_message(user(f"right {n}")) for n in range(30)]
    viewer = serve(folder)
    at, place = opened(viewer, session)
    stamp = place["state"]["stamp"]
    assert (place["length"], place["index"], place["state"]["count"]) == (31, 30, 61)
    entries = viewer.get(at + "entries", stamp=stamp, leaf=place["leaf"], **{"from": 10}, count=3).json
    assert ["right 9" in entries[0], "right 11" in entries[2], len(entries)] == [True, True, 3]
    lines = viewer.get(at + "lines", stamp=stamp, leaf=place["leaf"], **{"from": 0}, count=100).json
    assert len(lines) == 61
    assert sum(line[2] for line in lines) == 31
    elsewhere = viewer.get(at + "place", stamp=stamp, at=left[3], leaf=place["leaf"]).json
    assert (elsewhere["index"], elsewhere["length"]) == (4, 31)
    assert elsewhere["leaf"] != place["leaf"]
    assert viewer.get(at + "place", stamp=stamp, at="nobody").json["row"] == -1
    assert viewer.get(at + "find", stamp=stamp, q="RIGHT 2").json == [[33, *range(51, 61)], None]
    assert viewer.get(at + "place", stamp=stamp, at=right[0]).json["row"] == 31


def test_odd_requests_are_refused_in_a_line(serve, session, folder):
    """Numbers that are none, rows that do not exist and old stamps give 4xx or nothing, never a fault."""
    viewer = serve(folder)
    at, place = opened(viewer, session)
    stamp = place["state"]["stamp"]
    assert viewer.get(at + "entries", stamp=stamp, leaf="x").status == 400
    assert viewer.get(at + "entries", stamp=stamp, leaf="9" * 400).status == 400
    assert viewer.get(at + "entries", stamp="old").status == 409
    assert viewer.get(at + "entries", stamp=stamp, leaf=10**9, **{"from": -5}).json == []
    assert viewer.get(at + "entry", stamp=stamp, row=10**9).json == ""
    assert viewer.get(at + "lines", stamp=stamp, leaf=-7, **{"from": 10**9}).json == []
    assert viewer.get(at + "image", row=0, part=0).status == 404
    assert viewer.get("sessions", **{"from": "x"}).status == 400
    assert viewer.end() == (0, "")


def test_images_are_images(serve, folder, session):
    """A picture has its bytes and type; what only claims to be one, or could run, has none."""
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    kinds = [("image/png", pixel), ("image/svg+xml", pixel), ("text/html", pixel), ("image/png", "<b>")]
    blocks = [{"type": "image", "mimeType": kind, "data": data} for kind, data in kinds]
    session.append_message({"role": "user", "content": blocks, "timestamp": 0})
    viewer = serve(folder)
    at, _ = opened(viewer, session)
    answers = [viewer.get(at + "image", row=1, part=part) for part in range(5)]
    assert [answer.status for answer in answers] == [200, 404, 404, 404, 404]
    assert answers[0].headers["content-type"] == "image/png"
    assert answers[0].body.startswith(b"\x89PNG")


def test_images_that_were_moved_out_are_shown(serve, folder, session):
    """A moved image has its bytes and its place on the page; a lost one is a sentence there and has none."""
    from sessiontree.doctor import shrink

    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    for _ in range(2):
        blocks = [{"type": "image", "mimeType": "image/png", "data": pixel}]
        session.append_message({"role": "user", "content": blocks, "timestamp": 0})
    session.close()
    path = session.get_session_file()
    assert shrink(path, at_least=10) == 2
    viewer = serve(folder)
    at, place = opened(viewer, session)
    asked = {"stamp": place["state"]["stamp"], "leaf": place["leaf"]}
    shown = viewer.get(at + "entries", **asked).json
    assert [text.count("<img") for text in shown[1:]] == [1, 1]
    answer = viewer.get(at + "image", row=1, part=0)
    assert (answer.status, answer.body[:4]) == (200, b"\x89PNG")
    (kept,) = os.listdir(f"{path}.images")
    os.truncate(os.path.join(f"{path}.images", kept), 20)
    shown = viewer.get(at + "entries", **asked).json
    assert [text.count("lost or damaged") for text in shown[1:]] == [1, 1]
    assert "lost or damaged" in viewer.get(at + "entry", stamp=asked["stamp"], row=1).json
    assert viewer.get(at + "image", row=1, part=0).status == 404
    assert viewer.end() == (0, "")


def events(viewer, at):
    """Read what the stream of a session tells."""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=20) as stream:
        stream.sendall(ask(viewer, at + "events"))
        for line in stream.makefile("rb"):
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def test_a_reader_never_sees_half_a_line(serve, session, folder):
    """While a line is being written piece by piece, the stream tells of nothing; when it is whole, of one entry."""
    viewer = serve(folder)
    at, _ = opened(viewer, session)
    told = events(viewer, at)
    assert next(told)["count"] == 1
    entry = {
        "type": "message",
        "id": "whole001",
        "parentId": session.get_leaf_id(),
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": user("piece by piece"),
    }
    line = json.dumps(entry).encode() + b"\n"
    with open(session.get_session_file(), "ab", buffering=0) as file:
        for start in range(0, len(line), 40):
            file.write(line[start : start + 40])
            time.sleep(0.15)
            if start + 40 < len(line):
                state = viewer.get(at + "place").json["state"]
                assert state["count"] == 1
    assert next(told)["count"] == 2
    now = viewer.get(at + "place").json
    assert "piece by piece" in viewer.get(at + "entry", stamp=now["state"]["stamp"], row=1).json


def test_a_file_that_is_replaced_is_noticed(serve, session, folder):
    """Rows of the old file are refused; the stream tells the new stamp."""
    viewer = serve(folder)
    at, _ = opened(viewer, session)
    told = events(viewer, at)
    first = next(told)
    path = Path(session.get_session_file())
    text = path.read_text().replace("apples", "pears")
    other = path.with_suffix(".new")
    other.write_text(text + text.splitlines()[1].replace(session.get_leaf_id(), "0other00") + "\n")
    other.replace(path)
    assert next(told)["stamp"] != first["stamp"]
    assert viewer.get(at + "entry", stamp=first["stamp"], row=0).status == 409
    now = viewer.get(at + "place").json
    assert "pears" in viewer.get(at + "entry", stamp=now["state"]["stamp"], row=0).json


def test_a_file_that_is_no_session_any_more_is_told(serve, session, folder):
    """The stream says so once and ends; other sessions are shown as before."""
    viewer = serve(folder)
    at, _ = opened(viewer, session)
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=20) as stream:
        stream.sendall(ask(viewer, at + "events"))
        lines = stream.makefile("rb")
        while not next(lines).startswith(b"data: "):
            pass
        other = folder / "other"
        other.write_text("no session\n")
        other.replace(session.get_session_file())
        told = [line for line in lines if line.startswith((b"event: ", b"data: "))]
    assert told[0] == b"event: lost\n"
    assert session.get_session_file() in json.loads(told[1][6:])
    assert viewer.get(at).status in (404, 500)
    assert viewer.get("sessions").status == 200


def test_keys_stay_when_the_catalog_takes_over(serve, session, folder, monkeypatch, tmp_path):
    """A session has one address, from the first listing on, also where the folder is given relatively."""
    monkeypatch.chdir(tmp_path)
    viewer = serve(f"./{folder.name}/../{folder.name}")
    key = listed(viewer)["sessions"][0]["key"]
    until = time.monotonic() + 20
    while (now := viewer.get("sessions").json["sessions"][0])["cost"] is None and time.monotonic() < until:
        time.sleep(0.05)
    assert now["cost"] is not None
    assert now["key"] == key
    assert viewer.session(session.get_session_file()) == f"s/{key}/"


def test_a_file_that_is_gone_is_gone_from_the_list(serve, session, folder):
    """Its page is not found any more."""
    viewer = serve(folder)
    at, _ = opened(viewer, session)
    os.remove(session.get_session_file())
    until = time.monotonic() + 20
    while viewer.get("sessions").json["total"] and time.monotonic() < until:
        time.sleep(0.1)
    assert viewer.get(at).status == 404


def test_nothing_is_written_beside_the_catalog(serve, session, folder):
    """Looking at sessions changes neither them nor their folder."""
    before = {f: ((folder / f).read_bytes(), os.stat(folder / f).st_mtime_ns) for f in os.listdir(folder)}
    viewer = serve(folder)
    at, place = opened(viewer, session)
    viewer.get(at)
    viewer.get(at + "lines", stamp=place["state"]["stamp"])
    viewer.end()
    after = {f: ((folder / f).read_bytes(), os.stat(folder / f).st_mtime_ns) for f in os.listdir(folder)}
    assert after == before


ODD = (
    'quo"te',
    "back\\slash",
    "a/b",
    "Ünïcode",
    "key: 1",
    "tail\u2028end",
    "x{y}z",
    "(failed)",
    "tab\tbed",
    "É",
)


@pytest.mark.parametrize(
    "words", ["quo", 'o"t', "k\\s", "a/b", "nïc", "key: 1", "y}", "fail", "é", "d", "zz", "p/m"]
)
def test_search_skips_no_line_that_shows_the_words(tmp_path, words):
    """What is left out without parsing has nothing to find, however the line is escaped."""
    from sessiontree.export.model import items
    from sessiontree.viewer.opened import OpenedSession

    lines = [json.dumps({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"})]
    for n, text in enumerate(ODD):
        entry = {"type": "message", "id": f"i{n}", "parentId": None, "timestamp": "t", "message": user(text)}
        lines += [
            json.dumps(entry),
            json.dumps({**entry, "id": f"j{n}"}, ensure_ascii=False).replace("/", "\\/"),
        ]
    lines.append(json.dumps({"type": "model_change", "id": "m", "provider": "p", "modelId": "m"}))
    lines.append(json.dumps({"type": "label", "id": "l", "targetId": "i3", "label": "quoted fail zz"}))
    result = {
        "role": "toolResult",
        "isError": True,
        "toolName": "x",
        "content": [{"type": "text", "text": ""}],
    }
    lines.append(json.dumps({"type": "message", "id": "r", "message": result}))
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    session = SessionManager.open(path, read_only=True)
    rows = range(len(session.get_entries()))
    everything = [item.row for item in items(session, rows) if words in item.all_text().lower()]
    assert OpenedSession(str(path)).find(words, 0) == (everything, None)
    assert everything
