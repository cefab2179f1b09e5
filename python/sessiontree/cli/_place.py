"""Where sessions are looked for, and which one an argument means."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import click

from sessiontree import paths
from sessiontree.cli._progress import progress
from sessiontree.cli._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from click.shell_completion import CompletionItem

    from sessiontree import SessionInfo, SessionManager

_SHOWN_CANDIDATES = 10


class NotFoundError(click.ClickException):
    """There is no such session, entry or file; exit code 1."""


class Place:
    """A working directory and, if it is not pi's default one, the folder of its sessions."""

    def __init__(self, cwd: str | None, session_dir: str | None) -> None:
        try:
            self.cwd = paths.resolve_path(cwd) if cwd else os.getcwd()
        except FileNotFoundError:
            raise NotFoundError("the working directory is gone; --cwd names another one") from None
        self._given = session_dir

    @cached_property
    def session_dir(self) -> str | None:
        """The folder that the option names, else the environment, else the settings, as in pi."""
        given = self._given or paths.session_dir_from_environment() or _from_settings(self.cwd)
        return paths.normalize_path(given) if given else None

    def check_named(self) -> None:
        """Refuse a session folder that is named and does not exist; one that pi makes when it needs it may be missing.

        Raises:
            NotFoundError: the option or the environment names it.
        """
        named = self._given or paths.session_dir_from_environment()
        if named and self.session_dir and not os.path.exists(self.session_dir):
            raise NotFoundError(f"no such folder: {self.session_dir!r}")

    def find(self, given: str | None) -> str:
        """Find the session that an argument means.

        Args:
            given: a path, an id, the beginning of an id, or None for the newest session.

        Returns:
            The path of its file.

        Raises:
            NotFoundError: there is no such session.
            click.UsageError: several begin like this; it lists them.
        """
        if given is None:
            return self._newest()
        if _looks_like_path(given):
            return paths.resolve_path(given)
        from sessiontree.listing import find_session_by_id

        exactly = find_session_by_id(self.cwd, given, self.session_dir)
        return exactly or self._by_prefix(given)

    def open(self, given: str | None) -> SessionManager:
        """Open the session that an argument means; nothing is ever written to it."""
        from sessiontree import SessionManager

        path = self.find(given)
        with progress("opening"):
            return SessionManager.open(path, read_only=True, remember_leaf=True)

    def open_to_write(self, given: str | None) -> SessionManager:
        """Open the session that an argument means to append to it.

        Raises:
            NotFoundError: there is no such file; it is not made by mistake.
        """
        from sessiontree import SessionManager

        path = self.find(given)
        if not os.path.exists(path):
            raise NotFoundError(f"no such file: {path!r}; 'append --new' begins a session")
        with progress("opening"):
            return SessionManager.open(path, self.session_dir, remember_leaf=True)

    def _newest(self) -> str:
        from sessiontree.listing import find_recent_session

        newest = find_recent_session(self.cwd, self.session_dir)
        if newest is None:
            raise NotFoundError(
                f"no session of {self.cwd!r} yet; 'sessiontree list --all' shows all there are"
            )
        return newest

    def sessions(self) -> list[SessionInfo]:
        """Give the sessions of the working directory, as a listing shows them, the newest first."""
        from sessiontree.listing import scope

        folder, belongs = scope(self.cwd, self.session_dir)
        return [row for row in _listed(folder, "own") if belongs(row.cwd)]

    def all_sessions(self) -> list[SessionInfo]:
        """Give the sessions of all working directories, or of the folder that was given."""
        if self.session_dir:
            return _listed(self.session_dir, "own")
        return _listed(paths.sessions_root(), "below")

    def _by_prefix(self, given: str) -> str:
        for listed in (self.sessions, self.all_sessions):
            found = listed()
            same = [row for row in found if row.id == given]
            alike = same or [row for row in found if given and row.id.startswith(given)]
            if len(alike) > 1:
                raise click.UsageError(_ambiguous(given, alike))
            if alike:
                return alike[0].path
        raise NotFoundError(f"no session has the id {given!r}, or one that begins with it")


def _listed(folder: str, depth: Literal["own", "below"]) -> list[SessionInfo]:
    """List a folder, with what is kept of it; what cannot be read is not looked for."""
    from sessiontree._native import newest_first
    from sessiontree.shown import Listing

    with progress("looking for the session") as tell:
        listing = Listing(folder, depth, on_progress=tell)
    listing.save()
    return newest_first(listing.rows, "modified")


def _looks_like_path(given: str) -> bool:
    marks = ("/", os.sep, "\\")
    return (
        any(mark in given for mark in marks)
        or given.startswith(("~", "file://"))
        or given.endswith(".jsonl")
        or os.path.isfile(given)
    )


def _ambiguous(given: str, candidates: list[SessionInfo]) -> str:
    shown = [f"{info.id} ({one_line(info.name or info.first_message, 40)})" for info in candidates]
    more = len(shown) - _SHOWN_CANDIDATES
    rest = f" and {more} more" if more > 0 else ""
    return f"{given!r} is the beginning of several ids: {', '.join(shown[:_SHOWN_CANDIDATES])}{rest}"


def _from_settings(cwd: str) -> str | None:
    """The folder that pi's settings name. The settings are only read whole if they can hold one."""
    try:
        with open(os.path.join(paths.agent_dir(), "settings.json"), "rb") as file:
            text = file.read()
    except OSError:
        text = b""
    if b"sessionDir" not in text and b"\\" not in text:
        return None
    from sessiontree.settings import SettingsManager

    return SettingsManager.create(cwd, project_trusted=False).get_session_dir()


def entry_id(session: SessionManager, given: str) -> str:
    """Find the id that an argument means: an entry's id, its label, or the beginning of an id.

    Raises:
        NotFoundError: there is no such entry.
        click.UsageError: several begin like this.
    """
    if session.get_entry(given) is not None:
        return given
    labelled = [target for target, label in session.get_labels() if label == given]
    if labelled:
        return _the_one(labelled, f"{given!r} is the label of several entries")
    ids = session.get_ids()
    alike = list(dict.fromkeys(id for id in ids if isinstance(id, str) and given and id.startswith(given)))
    if not alike:
        raise NotFoundError(f"no entry has the id or the label {given!r} ({session.get_session_file()})")
    return _the_one(alike, f"{given!r} is the beginning of several ids")


def _the_one(candidates: list[str], otherwise: str) -> str:
    if len(candidates) == 1:
        return candidates[0]
    rest = len(candidates) - _SHOWN_CANDIDATES
    more = f" and {rest} more" if rest > 0 else ""
    raise click.UsageError(f"{otherwise}: {', '.join(candidates[:_SHOWN_CANDIDATES])}{more}")


def complete_session(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the id of a session of the working directory; a path is left to the shell."""
    from click.shell_completion import CompletionItem

    del param
    if _looks_like_path(incomplete):
        return [CompletionItem(incomplete, type="file")]
    place = Place(ctx.params.get("cwd"), ctx.params.get("session_dir"))
    return [
        CompletionItem(row.id, help=one_line(row.name or row.first_message, 60))
        for row in place.sessions()
        if row.id.startswith(incomplete)
    ]


def session_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add SESSION and the options that say where to look for it."""
    argument = click.argument("session", required=False, shell_complete=complete_session)
    return argument(place_options(function))


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where sessions are."""
    cwd = click.option("--cwd", metavar="DIR", help="Working directory whose sessions are meant.")
    folder = click.option("--session-dir", metavar="DIR", help="Folder of the session files, if not pi's.")
    return cwd(folder(function))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for other programs.")
