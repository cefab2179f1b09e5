"""A viewer that runs, and a way to ask it without a browser."""

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from browser import browser  # noqa: F401 - a fixture

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")

PROGRAM = "import sys; from sessiontree.cli import main; sys.exit(main())"
SRC = str(Path(__file__).resolve().parents[2] / "python")


@dataclasses.dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Viewer:
    """A viewer as a process of its own."""

    def __init__(self, folder, cache, *options):
        environment = {**os.environ, "SESSIONTREE_CACHE_DIR": str(cache), "PYTHONPATH": SRC}
        environment.pop("PI_CODING_AGENT_SESSION_DIR", None)
        arguments = ["serve", "--json", "--no-open", "--session-dir", str(folder), *options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.link = json.loads(line)["url"]
        parts = urllib.parse.urlsplit(self.link)
        self.port, self.place = parts.port, parts.path
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]

    @property
    def root(self):
        return self.link.partition("?")[0]

    def raw(self, path, *, host=None, cookie=None, method="GET"):
        """Ask for a path, with exactly these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host if host is not None else f"127.0.0.1:{self.port}")
            if cookie:
                connection.putheader("Cookie", cookie)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def get(self, path, **query):
        """Ask for something below the viewer's place, with the token."""
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self.raw(f"{self.place}{path}{asked}", cookie=f"sessiontree={self.token}")

    def session(self, path):
        """The place of a session file."""
        from sessiontree.viewer.shelf import key_of

        return f"s/{key_of(str(path))}/"

    def end(self):
        """End it with Ctrl-C; gives exit code and what it said on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def serve(tmp_path):
    """Start a viewer of a folder."""
    with contextlib.ExitStack() as stack:

        def start(folder, *options):
            viewer = Viewer(folder, tmp_path / "cache", *options)
            stack.callback(viewer.close)
            return viewer

        yield start
