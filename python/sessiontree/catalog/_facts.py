"""What a session shows, put together line by line, so that reading can go on where it ended.

The rules are those of the listing (`sessiontree.listing`): the header is judged in the same way, a line
with odd values contributes nothing, and the newest time of a message of user or assistant is when the
session was modified. Added are the texts that are searched and what the session has cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sessiontree import _native, jsontext, migrations
from sessiontree.catalog import _texts
from sessiontree.exceptions import InvalidJSONError

FIRST_WORDS: Final = 4096
"""Characters of the first message that are kept."""
_BOM: Final = b"\xef\xbb\xbf"
_LATEST: Final = 8_640_000_000_000_000
TOOLS_AND_SUMMARIES: Final = "Tools/summaries"


class Passage(NamedTuple):
    """A text of an entry, as it is stored."""

    entry: str
    role: str
    time: int | None
    model: str | None
    print: int
    text: str


class Spend(NamedTuple):
    """What an entry has used: tokens, and cost in US dollars."""

    print: int
    time: int | None
    model: str
    input: float
    output: float
    cache_read: float
    cache_write: float
    cost: float


@dataclass(slots=True)
class Facts:
    """A session as far as it has been read; the columns of its row in the catalog.

    Attributes:
        offset: where reading goes on: behind the last LF that was read.
        lines: physical lines before it.
        has_header: whether the header has come.
        loose_tail: whether an entry without LF at the end of the file was taken in.
        header_ms: the header's time, if it is a text.
        activity_ms: newest time of a message of user or assistant.
        model: the model in force, ``provider/model``.
        models: those that have answered, one a line.
        messages: message entries; skipped: lines that are no JSON; entries: lines that are entries.
    """

    id: str = ""
    cwd: str = ""
    parent: str | None = None
    version: float | None = None
    created_ms: int | None = None
    header_ms: int | None = None
    activity_ms: int | None = None
    name: str | None = None
    first_message: str = ""
    last_role: str | None = None
    stop_reason: str | None = None
    model: str | None = None
    models: str = ""
    messages: int = 0
    entries: int = 0
    skipped: int = 0
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    cost: float = 0
    offset: int = 0
    lines: int = 0
    has_header: int = 0
    loose_tail: int = 0

    def modified_ms(self, mtime_ns: int) -> int:
        """When the newest message was written, else the header, else the file."""
        if self.activity_ms is not None and self.activity_ms > 0:
            return self.activity_ms
        return self.header_ms if self.header_ms is not None else (mtime_ns + 500_000) // 1_000_000

    def take(
        self, line: bytes, passages: list[Passage], spends: list[Spend], *, is_tail: bool = False
    ) -> None:
        """Take one line in (without its LF); its texts and costs are added to the lists.

        Raises:
            NotASessionError: the line shows that the file is no session.
        """
        self.lines += 1
        if not self.has_header:
            line = line.removeprefix(_BOM)
        if not line.strip(b" \t\r"):
            return
        try:
            value = jsontext.loads(line)
        except InvalidJSONError:
            # A torn tail may be a line that is being written just now.
            self.skipped += not (is_tail and self.has_header)
            return
        if not self.has_header:
            self._take_header(value)
        elif isinstance(value, dict):
            self.entries += 1
            self._take_entry(value, line, passages, spends)

    def _take_header(self, value: Any) -> None:
        if value is None or value is False or value == "" or (value == 0 and not isinstance(value, bool)):
            return
        if (
            not isinstance(value, dict)
            or value.get("type") != "session"
            or not isinstance(value.get("id"), str)
        ):
            raise NotASessionError
        self.has_header = 1
        self.id = _texts.clean(value["id"])
        self.cwd = _texts.clean(_text(value.get("cwd")) or "")
        parent = _text(value.get("parentSession"))
        self.parent = None if parent is None else _texts.clean(parent)
        version = value.get("version")
        number = math.nan if isinstance(version, (list, dict)) else migrations.header_version(value)
        self.version = None if math.isnan(number) else number
        stamp = value.get("timestamp", [])
        self.created_ms = date_ms(stamp)
        self.header_ms = self.created_ms if isinstance(stamp, str) else None

    def _take_entry(
        self, entry: dict[str, Any], line: bytes, passages: list[Passage], spends: list[Spend]
    ) -> None:
        kind = entry.get("type")
        message = entry.get("message") if kind == "message" else None
        if kind == "message":
            self.messages += 1
            self._take_message(message, entry)
        elif kind == "session_info":
            self._take_name(entry.get("name"))
        elif kind == "model_change":
            self.model = _texts.clean(_texts.model_key(entry.get("provider"), entry.get("modelId")))
        texts = _texts.of_entry(entry)
        used = _used(entry, message)
        if not texts and used is None:
            return
        id = self._id_of(entry, line)
        time = _time_of(entry, message)
        print = _fingerprint(id, entry.get("timestamp"), texts, used)
        passages += [Passage(id, role, time, self.model, print, _texts.clean(text)) for role, text in texts]
        if used is not None:
            self._take_spend(Spend(print, time, _texts.clean(used[0]), *used[1]), spends)

    def _take_message(self, message: Any, entry: dict[str, Any]) -> None:
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str):
            return
        stop = message.get("stopReason")
        self.last_role = _texts.clean(role)
        self.stop_reason = _texts.clean(stop) if isinstance(stop, str) else None
        if role == "assistant":
            self._take_model(message)
        if role not in ("user", "assistant") or "content" not in message:
            return
        time = _own_time(message)
        if time is None:
            time = date_ms(entry.get("timestamp", []))
        if time is not None:
            self.activity_ms = time if self.activity_ms is None else max(self.activity_ms, time)
        if role == "user" and not self.first_message:
            self.first_message = _texts.clean(_texts.joined(message["content"]), FIRST_WORDS)

    def _take_model(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("model"), str):
            self.model = _texts.clean(_texts.model_of(message))
            known = self.models.split("\n") if self.models else []
            if self.model not in known:
                self.models = "\n".join([*known, self.model])

    def _take_name(self, name: Any) -> None:
        if name is None:
            self.name = None
        elif isinstance(name, str):
            self.name = _texts.clean(jsontext.trim(name)) or None

    def _take_spend(self, spend: Spend, spends: list[Spend]) -> None:
        spends.append(spend)
        self.input += spend.input
        self.output += spend.output
        self.cache_read += spend.cache_read
        self.cache_write += spend.cache_write
        self.cost += spend.cost

    def _id_of(self, entry: dict[str, Any], line: bytes) -> str:
        """The entry's id; what an entry of a version 1 file gets where it has none."""
        id = entry.get("id")
        if isinstance(id, str):
            return _texts.clean(id)
        old = self.version is not None and self.version < 2
        return _native.derived_id(self.lines, line) if old else ""


class NotASessionError(Exception):
    """The file is no session."""


def date_ms(value: Any) -> int | None:
    """The time of a JSON value as ``new Date(value)`` has it, in milliseconds since 1970."""
    if isinstance(value, str):
        return _native.parse_date(value)
    if value is not None and not isinstance(value, (int, float)):
        return None
    ms = value or 0
    return int(ms) if abs(ms) <= _LATEST else None


def _own_time(message: dict[str, Any]) -> int | None:
    stamp = message.get("timestamp")
    return date_ms(stamp) if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) else None


def _time_of(entry: dict[str, Any], message: Any) -> int | None:
    """When an entry was written: its own time, else its message's."""
    stamp = entry.get("timestamp")
    time = date_ms(stamp) if isinstance(stamp, (str, int, float)) else None
    if time is None and isinstance(message, dict):
        return _own_time(message)
    return time


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _used(entry: dict[str, Any], message: Any) -> tuple[str, tuple[float, float, float, float, float]] | None:
    """Whose usage an entry carries, and tokens in, out, read from and written to the cache, and cost."""
    kind = entry.get("type")
    if kind == "usage":
        key, usage = _texts.model_key(entry.get("provider"), entry.get("model")), entry.get("usage")
    elif kind in ("compaction", "branch_summary"):
        key, usage = TOOLS_AND_SUMMARIES, entry.get("usage")
    elif not isinstance(message, dict):
        return None
    elif message.get("role") == "assistant":
        key, usage = _texts.model_of(message), message.get("usage")
    else:
        key = TOOLS_AND_SUMMARIES
        usage = message.get("usage") if message.get("role") == "toolResult" else None
    if not isinstance(usage, dict):
        return None
    cost = usage.get("cost")
    values = (
        _number(usage.get("input")),
        _number(usage.get("output")),
        _number(usage.get("cacheRead")),
        _number(usage.get("cacheWrite")),
        _number(cost.get("total")) if isinstance(cost, dict) else 0.0,
    )
    return (key, values) if any(values) else None


def _number(value: Any) -> float:
    """A number as it is; anything else, and what is not finite, counts as 0."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0.0
    try:
        number = float(value)
    except OverflowError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _fingerprint(id: str, timestamp: Any, texts: list[tuple[str, str]], used: Any) -> int:
    """A number that is the same for the copies of an entry in forked sessions.

    Forks and branches copy id, time and message; the parent may be another one.
    """
    from hashlib import blake2b

    parts = [id, _texts.shown(timestamp), repr(used), *(text for _, text in texts)]
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
