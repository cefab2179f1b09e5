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
from sessiontree.cli._output import Screen, say
from sessiontree.cli._text import count, safe, size_text
from sessiontree.cli.show import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sessiontree import SessionInfo

_LISTED = 10

SAMPLES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "samples")


@click.command("demo", short_help="Watch it work, on a copy of one of your sessions or on a sample.")
@_place.place_options
@click.option("--samples", is_flag=True, help="Use the bundled samples even if there are sessions.")
def command(cwd: str | None, session_dir: str | None, samples: bool) -> None:
    r"""List sessions, then open, draw, append to, fork and reopen a copy of one, with times.

    It takes the largest of your own sessions, or a bundled sample if there are none. Your sessions are only
    read: all writing happens in a temporary folder that is removed at the end.

    \b
    Examples:
      sessiontree demo
      sessiontree demo --samples

    Exit codes: 0 fine, 1 failed, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    folder = place.session_dir
    _warm_up()
    show = _Show(Screen.of_stdout())
    infos = () if samples else show.step(lambda: _sessions(folder), _listed)
    samples = not infos
    if samples:
        infos = show.step(lambda: _sessions(SAMPLES), lambda found: f"{_listed(found)} (bundled samples)")
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

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def step(self, work: Callable[[], Any], tell: Callable[[Any], str]) -> Any:
        """Do something and say what came of it."""
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        say(f"{self.screen.paint(_duration(took).rjust(9), 'assistant')}  {safe(tell(result), keep='')}")
        sys.stdout.flush()
        return result


def _duration(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _sessions(session_dir: str | None) -> Sequence[SessionInfo]:
    found: Sequence[SessionInfo] = SessionManager.list_all(session_dir)
    return found


def _listed(infos: Sequence[SessionInfo]) -> str:
    size = size_text(sum(info.size for info in infos))
    return f"listed {count(len(infos), 'session')}, {size} read"


def _life(show: _Show, info: SessionInfo, folder: str) -> None:
    """Lead a copy of a session through its life."""
    copy = os.path.join(folder, os.path.basename(info.path))
    shutil.copyfile(info.path, copy)
    say(f"\n{safe(f'a copy of {info.path}, {size_text(info.size)}:', keep='')}")
    with show.step(
        lambda: SessionManager.open(copy), lambda opened: f"opened: {_content(opened)}"
    ) as session:
        say()
        tree.draw(session, keep=1)
        say()
        show.step(session.build_session_context, lambda built: f"built the context: {size_of(built)}")
        message = {"role": "user", "content": [{"type": "text", "text": "One more question."}]}
        stamped = {**message, "timestamp": time.time_ns() // 1_000_000}
        new = show.step(lambda: session.append_message(stamped), "appended a message, entry {}".format)
        show.step(
            lambda: _fork(copy, folder), lambda forked: f"forked into a new session: {_content(forked)}"
        )
    again = show.step(lambda: SessionManager.open(copy), lambda opened: f"opened again: {_content(opened)}")
    if again.get_leaf_id() != new:
        raise click.ClickException(f"the leaf is {again.get_leaf_id()!r}, not the appended entry {new!r}")
    say("           its leaf is the appended entry; your own sessions were not touched")


def _look(show: _Show, info: SessionInfo, folder: str) -> None:
    """Open a copy of a session and say what was met."""
    copy = shutil.copy(info.path, folder)
    name = os.path.basename(copy)
    with show.step(lambda: SessionManager.open(copy), lambda opened: f"opened {name}: {_content(opened)}"):
        pass


def _content(session: SessionManager) -> str:
    report = session.open_report
    found = [count(session.get_entry_count(), "entry", "entries")]
    if report.skipped:
        found.append(f"{count(report.skipped, 'line')} that are no JSON passed over")
    if report.torn_tail:
        found.append("a torn last line left alone")
    return ", ".join(found)


def _fork(path: str, folder: str) -> SessionManager:
    target = os.path.join(folder, "fork")
    return SessionManager.fork_from(path, target, session_dir=target)
