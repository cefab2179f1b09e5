"""What the catalog answers with, and which sessions are meant."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from sessiontree import paths
from sessiontree._native import SessionInfo, pack_info, unpack_infos
from sessiontree.catalog import _texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessiontree.catalog._facts import Facts

PathLike = str | os.PathLike[str]


class Filters(TypedDict, total=False):
    """Which sessions are meant; what is left out does not matter.

    Attributes:
        project: a directory: sessions of it and of those below it; a name without separators also means
            every directory of that name.
        since: only what is not older: sessions by `SessionInfo.modified`, hits and costs by their time.
            A datetime without zone is local.
        until: only what is older.
        model: ``provider/model`` or ``model``; ``*`` stands for anything.
        min_cost: sessions that have cost at least so much, in US dollars.
        max_cost: sessions that have cost at most so much.
        roots: only sessions in these folders and the folders in them.
        session: only this session file.
    """

    project: NotRequired[PathLike | None]
    since: NotRequired[datetime | None]
    until: NotRequired[datetime | None]
    model: NotRequired[str | None]
    min_cost: NotRequired[float | None]
    max_cost: NotRequired[float | None]
    roots: NotRequired[Sequence[PathLike] | None]
    session: NotRequired[PathLike | None]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh has done.

    Attributes:
        files: session files that there are.
        added: sessions that are new.
        grown: sessions of which only the new part was read.
        replaced: sessions that were read anew.
        removed: sessions whose files are gone, or are no sessions any more.
        failed: files and folders that could not be read; what the catalog has of them stays.
        bytes_read: bytes of session files that were read.
        complete: whether every folder could be read; where not, nothing in it counts as gone.
    """

    files: int = 0
    added: int = 0
    grown: int = 0
    replaced: int = 0
    removed: int = 0
    failed: int = 0
    bytes_read: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Tokens:
    """What was used.

    Attributes:
        input: tokens that models read anew.
        output: tokens that models wrote.
        cache_read: tokens that came from the providers' caches.
        cache_write: tokens that were written to these.
        cost: US dollars, as the session files have them.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0

    @property
    def total(self) -> int:
        """All tokens."""
        return self.input + self.output + self.cache_read + self.cache_write


class _Spent:
    """Room for what a session has used, as packed numbers and the models' names."""

    __slots__ = ("_spent",)
    _spent: bytes


@dataclass(frozen=True, slots=True)
class CatalogSession(_Spent):
    """A session as the catalog has it.

    Attributes:
        info: what a listing shows of it; of the first message only the first 4,096 characters.
        used: all that its file says was used; what forks share counts for each of them.
        models: the models that have answered, in the order of their first answers.
        has_text: whether it can be searched; texts of old sessions may have been dropped to save room.
    """

    info: SessionInfo
    used: Tokens
    models: tuple[str, ...]
    has_text: bool

    def __getattr__(self, name: str) -> Any:
        # Thousands are listed at once: `used` and `models` are made when they are first asked for.
        if name not in ("used", "models"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        used, models = _unpacked(self._spent)
        object.__setattr__(self, "used", used)
        object.__setattr__(self, "models", models)
        return used if name == "used" else models


@dataclass(frozen=True, slots=True)
class Total:
    """What was used by one session, project, model or day; entries that forks share count once.

    Attributes:
        key: the session's path, the project's directory, the model, the day as ``YYYY-MM-DD``; "" for
            all together, and for the day of entries without time.
        used: tokens and cost.
        calls: how many answers and summaries that was.
        sessions: in how many sessions.
    """

    key: str
    used: Tokens
    calls: int
    sessions: int


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found.

    Attributes:
        path: the session file.
        session_id: the session's id.
        session_name: its name, or the first words of its user.
        cwd: its directory.
        entry_id: the entry's id; "" if it has none.
        role: who said it, one of `ROLES`.
        time: when; None if the file does not say.
        model: the model that answered, or that was in force.
        snippet: the words around the hit, on one line.
        marks: start and end of what was found, in the snippet.
    """

    path: str
    session_id: str
    session_name: str
    cwd: str
    entry_id: str
    role: str
    time: datetime | None
    model: str | None
    snippet: str
    marks: tuple[tuple[int, int], ...] = field(default=())


_NUMBERS: Final = Struct("<5d")
SESSION: Final = ("info", "spent", "has_text")
"""The columns that `sessions_of` needs."""


def packed(path: str, facts: Facts, *, size: int, mtime_ns: int) -> tuple[bytes, bytes]:
    """Make the columns ``info`` and ``spent`` of a session: a listing reads them instead of twenty others."""
    info = SessionInfo(
        path,
        facts.id,
        cwd=facts.cwd,
        name=facts.name,
        parent_session_path=facts.parent,
        created_ms=facts.created_ms,
        modified_ms=facts.modified_ms(mtime_ns),
        message_count=facts.messages,
        first_message=facts.first_message,
        last_role=facts.last_role,
        stop_reason=facts.stop_reason,
        version=facts.version,
        skipped_lines=facts.skipped,
        size=size,
        mtime_ns=mtime_ns,
        cost=facts.cost,
    )
    numbers = (facts.input, facts.output, facts.cache_read, facts.cache_write, facts.cost)
    return pack_info(info), _NUMBERS.pack(*numbers) + facts.models.encode()


def _unpacked(spent: bytes) -> tuple[Tokens, tuple[str, ...]]:
    models = spent[_NUMBERS.size :].decode()
    return tokens_of(_NUMBERS.unpack_from(spent)), tuple(models.split("\n")) if models else ()


def sessions_of(rows: list[tuple[bytes, bytes, int]]) -> list[CatalogSession]:
    """Make sessions from the columns `SESSION`.

    Raises:
        ValueError: what was packed is damaged.
    """
    made, new = [], object.__new__
    # What `object.__setattr__` does, without looking each place up: the class is frozen.
    set_info, set_spent, set_text = (
        getattr(CatalogSession, name).__set__ for name in ("info", "_spent", "has_text")
    )
    for info, (_, spent, has_text) in zip(unpack_infos([row[0] for row in rows]), rows, strict=True):
        session = new(CatalogSession)
        set_info(session, info)
        set_spent(session, spent)
        set_text(session, bool(has_text))
        made.append(session)
    return made


def tokens_of(row: Sequence[float]) -> Tokens:
    """Make tokens from input, output, cache reads, cache writes and cost."""
    read, written, cache_read, cache_write, cost = row
    return Tokens(round(read), round(written), round(cache_read), round(cache_write), float(cost))


def time_of(ms: int | None) -> datetime | None:
    """A time in UTC; None for one that `datetime` cannot hold."""
    try:
        return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


class Where:
    """Conditions of SQL with their arguments."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.arguments: list[Any] = []

    def add(self, condition: str, *arguments: Any) -> None:
        """Add a condition."""
        self.conditions.append(condition)
        self.arguments += arguments

    def __str__(self) -> str:
        return " AND ".join(self.conditions) or "1"

    def filter(self, filters: Filters, *, time: str, model: str) -> Where:
        """Add filters; ``time`` and ``model`` are the conditions' columns."""
        unknown = set(filters) - Filters.__annotations__.keys()
        if unknown:
            raise TypeError(f"there is no filter {min(unknown)!r}")
        for moment, compare in ((filters.get("since"), ">="), (filters.get("until"), "<")):
            if moment is not None:
                self.add(f"{time} {compare} ?", round(moment.timestamp() * 1000))
        for cost, compare in ((filters.get("min_cost"), ">="), (filters.get("max_cost"), "<=")):
            if cost is not None:
                self.add(f"s.cost {compare} ?", cost)
        self._project(filters.get("project"))
        self._roots(filters.get("roots"))
        session = filters.get("session")
        if session is not None:
            self.add("s.path = ?", os.fsencode(paths.resolve_path(session)))
        name = filters.get("model")
        if name is not None:
            self.add(model, *_model_patterns(name))
        return self

    def _project(self, project: PathLike | None) -> None:
        if project is None:
            return
        name = _texts.clean(os.fspath(project))
        inside = paths.resolve_path(name)
        below = inside if inside.endswith(os.sep) else inside + os.sep
        condition = "s.cwd = ? OR substr(s.cwd, 1, ?) = ?"
        if os.sep in name or name in (".", "..", "~"):
            self.add(f"({condition})", inside, len(below), below)
        else:
            tail = os.sep + name
            self.add(f"({condition} OR substr(s.cwd, ?) = ?)", inside, len(below), below, -len(tail), tail)

    def _roots(self, roots: Sequence[PathLike] | None) -> None:
        if roots is None:
            return
        folders = [os.fsencode(paths.resolve_path(root)) for root in roots]
        places = ", ".join("?" * len(folders))
        self.add(
            f"(s.folder IN ({places}) OR s.folder IN (SELECT path FROM folders WHERE parent IN ({places})))",
            *folders,
            *folders,
        )


def _model_patterns(name: str) -> tuple[str, str]:
    """Patterns of GLOB for a whole name and for the part behind the provider."""
    pattern = _texts.clean(name).replace("[", "[[]").replace("?", "[?]")
    return pattern, f"*/{pattern}"


SESSION_MODEL: Final = (
    "EXISTS (SELECT 1 FROM spend x WHERE x.session = s.key AND (x.model GLOB ? OR x.model GLOB ?))"
)
