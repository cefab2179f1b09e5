"""``sessiontree demo``: the main job on a copy, with times; nobody's own sessions are ever written to."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import click

from sessiontree import SessionManager
from sessiontree._cachedir import CACHE_DIR_VARIABLE
from sessiontree.cli import _place, listing, tree
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._text import count, safe, size_text
from sessiontree.cli.show import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sessiontree import SessionContext, SessionInfo

    _Told = tuple[str, dict[str, Any]]

_LISTED = 10

SAMPLES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "samples")


@click.command("demo", short_help="Watch it work, on a copy of one of your sessions or on a sample.")
@_place.place_options
@click.option("--samples", is_flag=True, help="Use the bundled samples even if there are sessions.")
@_place.json_option
def command(cwd: str | None, session_dir: str | None, samples: bool, as_json: bool) -> None:
    r"""List sessions, then open, draw, append to, fork and reopen a copy of one, with times.

    It takes the largest of your own sessions, or a bundled sample if there are none. Your sessions are only
    read: all writing happens in a temporary folder that is removed at the end.

    With --json, an object a line says what a step did, and how many seconds it took.

    \b
    Examples:
      sessiontree demo
      sessiontree demo --samples
      sessiontree demo --json

    Exit codes: 0 fine, 1 failed, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    folder = place.session_dir
    _warm_up()
    show = _Show(Screen.of_stdout(), as_json=as_json)
    infos = () if samples else show.step("list", lambda: _sessions(folder), _listed)
    samples = not infos
    if samples:
        infos = show.step("list samples", lambda: _sessions(SAMPLES), _listed)
    if not as_json:
        listing.show(infos[:_LISTED], everywhere=True)
    with tempfile.TemporaryDirectory(prefix="sessiontree-demo-") as scratch, _cache_in(scratch):
        largest = max(infos, key=lambda info: info.size)
        _life(show, largest, scratch)
        for other in infos if samples else ():
            if other is not largest:
                _look(show, other, scratch)


@contextlib.contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Keep what is saved about the copies with them: the user's own cache shall not remember the demo."""
    before = os.environ.get(CACHE_DIR_VARIABLE)
    os.environ[CACHE_DIR_VARIABLE] = os.path.join(folder, "cache")
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE_DIR_VARIABLE]
        else:
            os.environ[CACHE_DIR_VARIABLE] = before


def _warm_up() -> None:
    """Import what the steps need: that costs once a process, and the times shown are those of the work."""
    for info in _sessions(SAMPLES):
        with SessionManager.open(info.path, read_only=True) as session:
            session.build_session_context()


class _Show:
    """Runs steps and tells what each did and how long it took."""

    def __init__(self, screen: Screen, *, as_json: bool) -> None:
        self.screen = screen
        self.as_json = as_json

    def step(self, name: str, work: Callable[[], Any], tell: Callable[[Any], _Told]) -> Any:
        """Do something and say what came of it, in words or as facts."""
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        words, facts = tell(result)
        if self.as_json:
            say_json({"step": name, "seconds": took, **facts})
        else:
            say(f"{self.screen.paint(_duration(took).rjust(9), 'assistant')}  {safe(words, keep='')}")
        sys.stdout.flush()
        return result

    def say(self, line: str = "") -> None:
        """Say what stands between steps, which is for readers only."""
        if not self.as_json:
            say(line)

    def draw(self, session: SessionManager) -> None:
        """Draw a session's tree, for readers."""
        if not self.as_json:
            say()
            tree.draw(session, keep=1)
            say()


def _duration(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _sessions(session_dir: str | None) -> Sequence[SessionInfo]:
    found: Sequence[SessionInfo] = SessionManager.list_all(session_dir)
    return found


def _listed(infos: Sequence[SessionInfo]) -> _Told:
    size = sum(info.size for info in infos)
    ours = any(os.path.dirname(info.path) == SAMPLES for info in infos)
    words = f"listed {count(len(infos), 'session')}, {size_text(size)} read"
    return f"{words} (bundled samples)" if ours else words, {"sessions": len(infos), "bytes": size}


def _life(show: _Show, info: SessionInfo, folder: str) -> None:
    """Lead a copy of a session through its life."""
    copy = os.path.join(folder, os.path.basename(info.path))
    shutil.copyfile(info.path, copy)
    show.say(f"\n{safe(f'a copy of {info.path}, {size_text(info.size)}:', keep='')}")
    with show.step("open", lambda: SessionManager.open(copy), _content("opened", path=info.path)) as session:
        show.draw(session)
        show.step("context", session.build_session_context, _built)
        message = {"role": "user", "content": [{"type": "text", "text": "One more question."}]}
        stamped = {**message, "timestamp": time.time_ns() // 1_000_000}
        new = show.step(
            "append",
            lambda: session.append_message(stamped),
            lambda entry: (f"appended a message, entry {entry}", {"id": entry}),
        )
        show.step("fork", lambda: _fork(copy, folder), _content("forked into a new session"))
    again = show.step("open again", lambda: SessionManager.open(copy), _content("opened again"))
    if again.get_leaf_id() != new:
        raise click.ClickException(f"the leaf is {again.get_leaf_id()!r}, not the appended entry {new!r}")
    show.say("           its leaf is the appended entry; your own sessions were not touched")


def _look(show: _Show, info: SessionInfo, folder: str) -> None:
    """Open a copy of a session and say what was met."""
    copy = shutil.copy(info.path, folder)
    told = _content(f"opened {os.path.basename(copy)}", path=info.path)
    with show.step("open", lambda: SessionManager.open(copy), told):
        pass


def _content(what: str, **facts: str) -> Callable[[SessionManager], _Told]:
    """Say what a session has, and what was met when it was opened."""

    def tell(session: SessionManager) -> _Told:
        report = session.open_report
        entries = session.get_entry_count()
        found = [count(entries, "entry", "entries")]
        if report.skipped:
            found.append(f"{count(report.skipped, 'line')} that are no JSON passed over")
        if report.torn_tail:
            found.append("a torn last line left alone")
        met = {"entries": entries, "skippedLines": report.skipped, "tornTail": report.torn_tail}
        return f"{what}: {', '.join(found)}", {**facts, **met}

    return tell


def _built(context: SessionContext) -> _Told:
    return f"built the context: {size_of(context)}", {"messages": len(context.messages)}


def _fork(path: str, folder: str) -> SessionManager:
    target = os.path.join(folder, "fork")
    return SessionManager.fork_from(path, target, session_dir=target)
