r"""Check session files and repair them; move large images out of them and back.

`check` reads a file once and says what is wrong with it, and where. `fix` repairs what can be repaired
without guessing at contents: it never changes a text, it moves whole lines and sets ids and parents. The
file is replaced atomically under the lock that all writers take, a copy of the old one is left beside it
(``.bak``), and bytes that have no place in the new one go to a file ``.rejected``. A second repair finds
nothing to do.

References are read as they were written: an entry's ``parentId`` means the last entry with this id before
it in the file.
"""

from __future__ import annotations

import json
import os
import re
import stat as modes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from sessiontree import _native, jsontext, migrations
from sessiontree._images import IMAGE, restore, shrink
from sessiontree.exceptions import InvalidJSONError, InvalidSessionError, UnsupportedVersionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    PathLike = str | os.PathLike[str]

__all__ = ["Diagnosis", "Finding", "check", "fix", "plan", "restore", "shrink"]

Kind = Literal[
    "malformed", "glued", "nul", "torn", "unterminated", "foreign", "header", "duplicate", "cycle",
    "missing-parent", "label-target", "compaction-target", "edit-target", "result-without-call", "large",
    "clock", "mode",
]  # fmt: skip
"""What a finding is about."""

_TYPES: Final = frozenset(
    [
        "message",
        "model_change",
        "thinking_level_change",
        "usage",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "context_edit",
        "label",
        "session_info",
        "active_tools_change",
        "leaf",
    ]
)
_NEWEST: Final = 3
_TARGETS: Final = ("targetId", "firstKeptEntryId", "fromId")
_ENTRY: Final = re.compile(r'\{"type":"(?:' + "|".join([*sorted(_TYPES), "session"]) + '")')
_LARGE: Final = 1 << 20
_JUMP_MS: Final = 60_000
_BOM: Final = b"\xef\xbb\xbf"
_DECODER: Final = json.JSONDecoder(strict=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or odd, in a session file.

    Attributes:
        kind: what it is about.
        line: physical line, from 1; 0 for the file itself.
        byte: where the line begins in the file.
        entry_id: the entry's id, if it has one.
        text: what is wrong, in words.
        fixable: whether `fix` repairs it.
    """

    kind: Kind
    line: int
    byte: int
    entry_id: str | None
    text: str
    fixable: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a check has found.

    Attributes:
        path: the file.
        findings: in file order.
        entries: number of sound entries.
        size: bytes of the file.
        image_bytes: how many of these are images.
    """

    path: str
    findings: tuple[Finding, ...]
    entries: int
    size: int
    image_bytes: int

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    @property
    def fixable(self) -> tuple[Finding, ...]:
        """What `fix` would repair."""
        return tuple(finding for finding in self.findings if finding.fixable)


@dataclass(slots=True)
class _Line:
    """A line of the repaired file, with what it says and where it came from."""

    raw: bytes
    value: Any
    number: int
    byte: int
    changes: dict[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> str | None:
        id = self.value.get("id") if isinstance(self.value, dict) else None
        return id if isinstance(id, str) else None

    def text(self) -> bytes:
        return _native.splice_members(self.raw, self.changes) if self.changes else self.raw


def check(path: PathLike) -> Diagnosis:
    """Say what is wrong with a session file; nothing is written.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
        InvalidSessionError: it has no session header.

    Example:
        >>> check("/no/such/file.jsonl")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file.jsonl'
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        data = file.read()
        mode = os.fstat(file.fileno()).st_mode
    patient = _Patient(name, data, mode)
    findings = sorted(patient.findings, key=lambda finding: (finding.byte, finding.line))
    return Diagnosis(name, tuple(findings), patient.entries, len(data), patient.image_bytes)


def plan(path: PathLike) -> list[str]:
    """Say what `fix` would do, a line each; nothing is written.

    Raises:
        OSError: the file cannot be read.
        InvalidSessionError: it has no session header.
    """
    with open(path, "rb") as file:
        data, mode = file.read(), os.fstat(file.fileno()).st_mode
    return _Patient(os.fspath(path), data, mode).actions


def fix(path: PathLike) -> Diagnosis:
    """Repair a session file, with a copy of the old one beside it; the second time nothing changes.

    Returns:
        What is still found; what can be repaired is not among it.

    Raises:
        OSError: the file cannot be read or replaced; then it is as it was.
        InvalidSessionError: it has no session header.
    """
    name = os.fspath(path)
    written: list[str] = []

    def parts() -> list[bytes] | None:
        # Called again if the file changes meanwhile: the copies are made of what is replaced.
        for old in written:
            os.remove(old)
        written.clear()
        with open(name, "rb") as file:
            data, mode = file.read(), os.fstat(file.fileno()).st_mode
        patient = _Patient(name, data, mode)
        repaired = patient.repaired()
        if repaired == data:
            return None
        if patient.version > _NEWEST:
            raise UnsupportedVersionError(f"only files up to version 3 can be repaired ({name})")
        written.append(_beside(name, "bak", data))
        if patient.rejected:
            written.append(_beside(name, "rejected", b"".join(piece + b"\n" for piece in patient.rejected)))
        return [repaired]

    _native.replace_file(name, parts)
    mode = os.stat(name).st_mode
    if _is_open_to_others(mode):
        os.chmod(name, modes.S_IMODE(mode) & 0o700)
    return check(name)


def _beside(path: str, ending: str, data: bytes) -> str:
    """Write a new file beside another; a number makes its name a new one."""
    number = 0
    while True:
        name = f"{path}.{ending}{number or ''}"
        try:
            _native.create_file(name, [data], sync=True)
        except FileExistsError:
            number += 1
        else:
            return name


def _is_open_to_others(mode: int) -> bool:
    return os.name != "nt" and bool(mode & 0o077)


class _Patient:
    """A file being looked over: its lines as they should be, and what was found on the way."""

    def __init__(self, path: str, data: bytes, mode: int) -> None:
        self.findings: list[Finding] = []
        self.actions: list[str] = []
        self.rejected: list[bytes] = []
        self.image_bytes = 0
        self._data = data
        self._path = path
        self._lines: list[_Line] = []
        self._entries: list[_Line] = []
        self._header: _Line | None = None
        for number, byte, raw, ended in _physical_lines(data):
            self._take(number, byte, raw, ended=ended)
        if self._header is None:
            raise InvalidSessionError(f"no session header ({path}, line 1, byte 0)")
        if _is_open_to_others(mode):
            self._find(
                "mode",
                0,
                0,
                None,
                f"others may read the file (mode {modes.S_IMODE(mode):o})",
                "make it private",
            )
        self._entries = [line for line in self._lines if line.value is not None and line is not self._header]
        self.version: float = migrations.header_version(self._header.value)
        if self.version >= _NEWEST:
            _Tree(self._entries, self).look()
        _look_at_times(self._entries, self)
        _look_at_calls(self._entries, self)

    @property
    def entries(self) -> int:
        """Number of sound entries."""
        return len(self._entries)

    def repaired(self) -> bytes:
        """The bytes of the repaired file."""
        return b"".join(line.text() + b"\n" for line in self._lines)

    def _find(self, kind: Kind, number: int, byte: int, id: str | None, text: str, action: str = "") -> None:
        self.findings.append(Finding(kind, number, byte, id, text, bool(action)))
        if action:
            self.actions.append(f"line {number}: {action}" if number else action)

    def found(self, kind: Kind, line: _Line, text: str, action: str = "") -> None:
        """Add a finding about a line; with an action it can be repaired."""
        self._find(kind, line.number, line.byte, line.id, text, action)

    def _take(self, number: int, byte: int, raw: bytes, *, ended: bool) -> None:
        """Take a physical line in."""
        bare = raw.removeprefix(_BOM) if number == 1 else raw
        if not bare.strip(b" \t\r"):
            if ended:
                self._lines.append(_Line(raw, None, number, byte))
            elif raw:
                self._find(
                    "unterminated", number, byte, None, "blanks without a newline", "end it with a newline"
                )
                self._lines.append(_Line(raw, None, number, byte))
            return
        value, sound = _parsed(bare)
        if not sound:
            self._salvage(number, byte, raw, ended=ended)
            return
        if not ended:
            self._find(
                "unterminated", number, byte, None, "the last line has no newline", "end it with a newline"
            )
        self._keep(_Line(raw, value, number, byte))

    def _keep(self, line: _Line) -> None:
        """Keep a line that is JSON."""
        self._lines.append(line)
        value = line.value
        images = sum(len(found[1]) for found in IMAGE.finditer(line.raw)) if len(line.raw) > 1000 else 0
        self.image_bytes += images
        if len(line.raw) > _LARGE:
            share = f", {100 * images // len(line.raw)} % of it images" if images else ""
            self.found("large", line, f"the line has {len(line.raw):,} bytes{share}")
        if isinstance(value, dict) and value.get("type") == "session":
            if self._header is None and line.id is not None:
                self._header = line
            else:
                self.found("header", line, "another session header")
                line.value = None
        elif not isinstance(value, dict):
            self.found("foreign", line, f"not an entry but {_shown(line.raw)}")
            line.value = None
        elif not isinstance(value.get("type"), str):
            self.found("foreign", line, "an object without a type")
        elif value["type"] not in _TYPES:
            self.found("foreign", line, f"an entry of unknown type {value['type']!r}")

    def _salvage(self, number: int, byte: int, raw: bytes, *, ended: bool) -> None:
        """Look for whole entries in a line that is no JSON; the rest has no place in a repaired file."""
        pieces = list(_pieces(raw))
        good = [piece for piece, value in pieces if value is not None]
        bad = [piece for piece, value in pieces if value is None]
        torn = not ended and not good
        if not raw.strip(b"\0 \t\r"):
            kind: Kind = "nul"
            text, action = f"{len(raw):,} NUL bytes", "move them to the .rejected file"
        elif good:
            kind = "nul" if all(not piece.strip(b"\0 \t\r") for piece in bad) and bad else "glued"
            rest = f", and {sum(map(len, bad)):,} bytes that are none" if bad else ""
            text = f"{len(good)} {'entries' if len(good) > 1 else 'entry'} in a damaged line{rest}"
            action = "put each entry on a line of its own" + (
                ", move the rest to the .rejected file" if bad else ""
            )
        else:
            kind = "torn" if torn else "malformed"
            text = f"the last line is torn: {_shown(raw)}" if torn else f"not JSON: {_shown(raw)}"
            action = "move it to the .rejected file"
        self._find(kind, number, byte, None, text, action)
        self.rejected += bad
        for piece, value in pieces:
            if value is not None:
                self._keep(_Line(piece, value, number, byte))


def _physical_lines(data: bytes) -> Iterator[tuple[int, int, bytes, bool]]:
    """Give number, byte, text and whether an LF ends it, of each line."""
    start, number = 0, 1
    while start < len(data):
        end = data.find(b"\n", start)
        ended = end >= 0
        stop = end if ended else len(data)
        yield number, start, data[start:stop], ended
        start, number = stop + 1, number + 1


def _parsed(raw: bytes) -> tuple[Any, bool]:
    try:
        return jsontext.loads(raw), True
    except InvalidJSONError:
        return None, False


def _pieces(raw: bytes) -> Iterator[tuple[bytes, Any]]:
    """Cut a line into whole entries and the rest, which has no value; nothing is left out."""
    text = raw.decode("utf-8", "surrogateescape")
    start = 0
    for found in _ENTRY.finditer(text):
        at = found.start()
        value, end = (None, at) if at < start else _entry_at(text, at)
        if value is None:
            continue
        if text[start:at].strip(" \t\r"):
            yield text[start:at].encode("utf-8", "surrogateescape"), None
        yield text[at:end].encode("utf-8", "surrogateescape"), value
        start = end
    if text[start:].strip(" \t\r"):
        yield text[start:].encode("utf-8", "surrogateescape"), None


def _entry_at(text: str, at: int) -> tuple[Any, int]:
    """The entry that begins here and where it ends; None if none does, or only a part of one."""
    try:
        _, end = _DECODER.raw_decode(text, at)
        value = jsontext.loads(text[at:end].encode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None, at
    is_entry = isinstance(value, dict) and ("parentId" in value or value.get("type") == "session")
    return (value, end) if is_entry else (None, at)


def _shown(raw: bytes) -> str:
    """The beginning of a line, as an error shows it."""
    text = raw[:60].decode("utf-8", "replace")
    return f"{text!r}{'…' if len(raw) > 60 else ''}"


def _key(id: Any) -> Any:
    """What ids are compared by: texts with texts, numbers with numbers."""
    if isinstance(id, (int, float)) and not isinstance(id, bool):
        return ("number", float(id)) if abs(id) < 1e300 else None
    return id if isinstance(id, str) else None


def _free_id(line: _Line, taken: set[str]) -> str:
    attempt = 0
    while (new := _native.derived_id(line.number, line.raw, attempt)) in taken:
        attempt += 1
    return new


class _Tree:
    """Ids and parents of a file's entries; what is wrong with them is set right in `_Line.changes`."""

    def __init__(self, entries: list[_Line], patient: _Patient) -> None:
        self._entries = entries
        self._patient = patient
        self._rows: dict[Any, int] = {}
        self._names: dict[int, str] = {}
        self._parents: list[int] = []

    def look(self) -> None:
        """Look the tree over."""
        taken = {line.id for line in self._entries if line.id is not None}
        wanted = self._give_ids(taken)
        for parent in wanted:
            self._parents.append(self._rows.get(_key(parent), -2) if parent else -1)
        self._break_cycles()
        for row, line in enumerate(self._entries):
            if self._parents[row] == -2:
                parent = _shown(jsontext.dumps(line.value["parentId"]))
                self._attach(row, "missing-parent", f"the parent {parent} is not in the file")
        self._look_at_targets(taken)

    def _give_ids(self, taken: set[str]) -> list[Any]:
        """Give entries whose id is taken another one; the parents' ids as they are then called."""
        renamed: dict[str, str] = {}
        wanted: list[Any] = []
        for row, line in enumerate(self._entries):
            wanted.append(self._refer(line, renamed))
            id = line.id
            if id is None:
                key = _key(line.value.get("id"))
                if key is not None:
                    self._rows[key] = row
                continue
            if id in self._rows:
                renamed[id] = new = _free_id(line, taken)
                taken.add(new)
                line.changes["id"] = json.dumps(new).encode()
                self._patient.found(
                    "duplicate", line, f"the id {id!r} is taken", f"give the entry the id {new!r}"
                )
                id = new
            self._rows[id] = row
            self._names[row] = id
        return wanted

    def _refer(self, line: _Line, renamed: dict[str, str]) -> Any:
        """Let an entry name others as they are called now; its parent's id."""
        for key in ("parentId", *_TARGETS):
            named = line.value.get(key)
            if isinstance(named, str) and named in renamed:
                line.changes[key] = json.dumps(renamed[named]).encode()
        parent = line.value.get("parentId")
        return renamed.get(parent, parent) if isinstance(parent, str) else parent

    def _break_cycles(self) -> None:
        """Find entries whose way up comes back to them; the first of each cycle is attached anew."""
        state = [0] * len(self._entries)
        for start in range(len(self._entries)):
            way, row = [], start
            while row >= 0 and state[row] == 0:
                state[row] = 1
                way.append(row)
                row = self._parents[row]
            if row >= 0 and state[row] == 1:
                first = min(way[way.index(row) :])
                self._attach(first, "cycle", "the entry is among its own ancestors")
            for passed in way:
                state[passed] = 2

    def _attach(self, row: int, kind: Kind, text: str) -> None:
        """Hang an entry on the one before it in the file, or on none if that one hangs on it."""
        self._parents[row] = -1
        parent = row - 1
        while parent >= 0 and (parent not in self._names or self._is_below(parent, row)):
            parent -= 1
        line = self._entries[row]
        self._parents[row] = parent
        new = self._names.get(parent)
        line.changes["parentId"] = b"null" if new is None else json.dumps(new).encode()
        where = "nothing" if new is None else f"the entry before it, {new!r}"
        self._patient.found(kind, line, text, f"hang the entry on {where}")

    def _is_below(self, row: int, ancestor: int) -> bool:
        seen: set[int] = set()
        while row >= 0 and row not in seen:
            if row == ancestor:
                return True
            seen.add(row)
            row = self._parents[row]
        return False

    def _look_at_targets(self, ids: set[str]) -> None:
        targets: dict[str, tuple[str, Kind]] = {
            "label": ("targetId", "label-target"),
            "context_edit": ("targetId", "edit-target"),
            "compaction": ("firstKeptEntryId", "compaction-target"),
        }
        for line in self._entries:
            kind = line.value.get("type")
            if not isinstance(kind, str) or kind not in targets:
                continue
            key, finding = targets[kind]
            target = line.value.get(key)
            if not isinstance(target, str) or target not in ids:
                self._patient.found(
                    finding, line, f"{key} names {_shown(jsontext.dumps(target))}, which is not in the file"
                )


def _look_at_times(entries: list[_Line], patient: _Patient) -> None:
    """Times must not go back by more than a minute."""
    latest: float | None = None
    for line in entries:
        time = jsontext.parse_date(line.value.get("timestamp", ""))
        if time != time:  # noqa: PLR0124 - NaN: no time at all
            continue
        if latest is not None and time < latest - _JUMP_MS:
            patient.found("clock", line, f"the clock goes back by {(latest - time) / 1000:,.0f} seconds")
            latest = time
        latest = time if latest is None else max(latest, time)


def _look_at_calls(entries: list[_Line], patient: _Patient) -> None:
    """Results of tools must have a call before them."""
    calls: set[str] = set()
    for line in entries:
        message = line.value.get("message") if line.value.get("type") == "message" else None
        if not isinstance(message, dict):
            continue
        if message.get("role") == "toolResult":
            id = message.get("toolCallId")
            if not isinstance(id, str) or id not in calls:
                patient.found(
                    "result-without-call",
                    line,
                    f"no tool call {_shown(jsontext.dumps(id))} stands before its result",
                )
        elif isinstance(message.get("content"), list):
            for block in message["content"]:
                if (
                    isinstance(block, dict)
                    and block.get("type") == "toolCall"
                    and isinstance(block.get("id"), str)
                ):
                    calls.add(block["id"])
