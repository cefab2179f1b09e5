r"""Check session files and repair them; move large images out of them and back.

`check` reads a file once and says what is wrong with it, and where. `fix` repairs what can be repaired
without guessing at contents: it never changes a text, it puts entries on lines of their own and sets ids
and parents. The file is replaced atomically under the lock that all writers take, with its mode; the old
file stays beside it under another name (``.bak``), and bytes that have no place in the new one go to a
file ``.rejected``. A second repair finds nothing to do. Both read the file line by line: what they keep of
it is some 60 bytes an entry.

References are read as they were written: an entry's ``parentId`` means the last entry with this id before
it in the file.

How bad a finding is:

| severity | kinds |
|---|---|
| error: entries or images are lost, cannot be read or cannot be reached | malformed, glued, nul, torn, duplicate, cycle, missing-parent, unreachable, lost-image, damaged-image |
| warning: something leads nowhere, or cannot be used | unterminated, foreign, nameless, header, unusable, label-target, compaction-target, edit-target, result-without-call, clock |
| note: nothing is wrong with it | unknown-type, large, mode |
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from sessiontree import _native
from sessiontree._images import Images, restore, shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    PathLike = str | os.PathLike[str]
    Progress = Callable[[int, int], None]
    Words = tuple[str, str]

__all__ = ["Diagnosis", "Finding", "check", "fix", "plan", "restore", "shrink"]

Kind = Literal[
    "malformed", "glued", "nul", "torn", "unterminated", "foreign", "nameless", "unknown-type", "header",
    "unusable", "duplicate", "cycle", "missing-parent", "unreachable", "label-target", "compaction-target",
    "edit-target", "result-without-call", "large", "clock", "mode", "lost-image", "damaged-image",
]  # fmt: skip
"""What a finding is about."""

Severity = Literal["error", "warning", "note"]
"""How bad a finding is."""

_ERRORS: Final = frozenset(
    [
        "malformed", "glued", "nul", "torn", "duplicate", "cycle", "missing-parent", "unreachable",
        "lost-image", "damaged-image",
    ]
)  # fmt: skip
_NOTES: Final = frozenset(["unknown-type", "large", "mode"])


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or odd, in a session file.

    Attributes:
        kind: what it is about.
        line: physical line, from 1; 0 for the file itself.
        byte: where the line, or the entry in a damaged line, begins in the file.
        entry_id: the entry's id, if it has one; at most its first 200 bytes.
        text: what is wrong, in words. What the file says is in it as JSON or as Python writes it: control
            characters are escaped.
        action: what `fix` does about it; empty if it does nothing by itself.
        fixable: whether nothing of it is left after `fix`.
    """

    kind: Kind
    line: int
    byte: int
    entry_id: str | None
    text: str
    action: str = ""
    fixable: bool = False

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return "error" if self.kind in _ERRORS else "note" if self.kind in _NOTES else "warning"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a check has found.

    It is true if something is wrong; notes do not count.

    Attributes:
        path: the file.
        findings: in file order; of each kind the first thousand.
        counts: how many there are of each kind.
        entries: number of sound entries, those in damaged lines among them.
        size: bytes of the file.
        image_bytes: how many of these are images; those that `shrink` moved out are not in the file.
        backup: after a repair: where the old file is.
        rejected: after a repair: where the bytes are that have no place in the new file, if there are any.
    """

    path: str
    findings: tuple[Finding, ...]
    counts: Mapping[Kind, int]
    entries: int
    size: int
    image_bytes: int
    backup: str | None = None
    rejected: str | None = None

    def __bool__(self) -> bool:
        """Whether something is wrong."""
        return any(finding.severity != "note" for finding in self.findings)

    @property
    def fixable(self) -> tuple[Finding, ...]:
        """What `fix` would repair."""
        return tuple(finding for finding in self.findings if finding.fixable)

    @property
    def plan(self) -> list[str]:
        """What `fix` would do, a line each."""
        steps = [f"line {found.line}: {found.action}" for found in self.findings if found.action]
        kinds = {found.kind for found in self.findings if found.action}
        more = sum(self.counts[kind] for kind in kinds) - len(steps)
        return [*steps, f"and {more:,} more of these"] if more else steps


def check(path: PathLike, *, read_images: bool = False, progress: Progress | None = None) -> Diagnosis:
    """Say what is wrong with a session file; nothing is written.

    Args:
        path: the file.
        read_images: whether the images that `shrink` moved out are read, too, to find those whose content is
            not what it was; else it is only looked whether each is there, as a file of its length.
        progress: is told now and then how many bytes of how many have been read.

    Raises:
        OSError: it cannot be read.
        InvalidSessionError: it has no session header.

    Example:
        >>> check("/no/such/file.jsonl")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file.jsonl'
    """
    return _check(path, None, None, progress, read_images=read_images)


def plan(path: PathLike) -> list[str]:
    """Say what `fix` would do, a line each; nothing is written.

    Raises:
        OSError: the file cannot be read.
        InvalidSessionError: it has no session header.
    """
    return check(path).plan


def fix(path: PathLike, *, read_images: bool = False, progress: Progress | None = None) -> Diagnosis:
    """Repair a session file; the old one stays beside it; the second time nothing changes.

    Args:
        path: the file; if it is a link, the file it names is repaired, and the link stays.
        read_images: as for `check`; a repair leaves images as they are, also those that are lost.
        progress: is told now and then how many bytes of how many have been read.

    Returns:
        What is still found; what can be repaired is not among it.

    Raises:
        OSError: the file cannot be read or replaced; then it is as it was.
        InvalidSessionError: it has no session header.
        UnsupportedVersionError: there is something to repair, and the file's version is newer than 3.
    """
    backup, rejected = _native.repair_file(path, progress=progress) or (None, None)
    return _check(path, backup, rejected, progress, read_images=read_images)


def _check(
    path: PathLike, backup: str | None, rejected: str | None, progress: Progress | None, *, read_images: bool
) -> Diagnosis:
    with Images(path) as images:
        look_for = partial(images.trouble, read=read_images)
        found = _native.examine(path, look_for, progress=progress)
    findings = [_finding(*parts) for parts in found["findings"]]
    counts = found["counts"]
    if os.name != "nt" and found["mode"] & 0o077:
        text = f"others may open the file (mode {found['mode']:04o}); chmod 600 makes it private"
        findings.insert(0, Finding("mode", 0, 0, None, text))
        counts["mode"] = 1
    return Diagnosis(
        os.fspath(path), tuple(findings), counts, found["entries"], found["size"], found["image_bytes"],
        backup, rejected,
    )  # fmt: skip


def _finding(
    kind: tuple[Kind, bool], place: tuple[int, int, bytes | None], detail: tuple[bytes, bytes, int, int]
) -> Finding:
    name, fixable = kind
    line, byte, id = place
    text, action = _WORDS[name](*detail)
    entry_id = None if id is None else _decoded(id)
    return Finding(name, line, byte, entry_id, text, action, fixable)


def _decoded(text: bytes) -> str:
    """Give a text in WTF-8, which may be cut anywhere."""
    try:
        return text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace")


def _value(text: bytes) -> str:
    """Show a JSON value, or its beginning: a text as Python writes it, so that no quotes are doubled."""
    try:
        value = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        cut = text.startswith(b'"')
        return f"{_bytes(text[1:])}…" if cut else _bytes(text)[1:-1]
    return repr(value) if isinstance(value, str) else _bytes(text)[1:-1]


def _bytes(text: bytes) -> str:
    """Show the beginning of a line."""
    return repr(text.decode("utf-8", "replace"))


def _number(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


_SPLIT: Final = "put each entry on a line of its own"
_REJECT: Final = "move it to the .rejected file"
_REJECT_REST: Final = "move the rest to the .rejected file"


def _malformed(shown: bytes, _to: bytes, length: int, _b: int) -> Words:
    return f"not JSON: {_bytes(shown)}{_rest(shown, length)}", _REJECT


def _torn(shown: bytes, _to: bytes, length: int, _b: int) -> Words:
    return f"the last line is torn: {_bytes(shown)}{_rest(shown, length)}", _REJECT


def _rest(shown: bytes, length: int) -> str:
    return f"… ({length:,} bytes)" if length > len(shown) else ""


def _glued(_shown: bytes, _to: bytes, good: int, bad: int) -> Words:
    entries = _number(good, "entry", "entries")
    if not bad:
        return f"{entries} in a damaged line", _SPLIT
    rest = _number(bad, "byte")
    return f"{entries} in a damaged line, and {rest} of something else", f"{_SPLIT}, {_REJECT_REST}"


def _nul(_shown: bytes, _to: bytes, good: int, bad: int) -> Words:
    zeros = _number(bad, "NUL byte")
    if not good:
        return zeros, _REJECT
    return f"{zeros} around {_number(good, 'entry', 'entries')}", f"{_SPLIT}, {_REJECT_REST}"


def _unterminated(_shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return "the last line has no newline", "end it with a newline"


def _foreign(shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return f"not an entry but {_value(shown)}", ""


def _nameless(_shown: bytes, _to: bytes, without: int, _b: int) -> Words:
    return ("an entry without an id" if without else "an object without a type"), ""


def _unknown_type(shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return f"an entry of the unknown type {_value(shown)}", ""


def _header(_shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return "another session header", ""


def _unusable(_shown: bytes, _to: bytes, what: int, _b: int) -> Words:
    texts = (
        "a message entry without a message",
        "a name that is no text",
        "a replacement that is neither null nor an object",
    )
    return texts[what], ""


def _duplicate(_shown: bytes, to: bytes, _a: int, _b: int) -> Words:
    return "an entry before it has this id", f"give it the id {_value(to)}"


def _parent(to: bytes) -> str:
    return "make it a root" if to == b"null" else f"hang it on {_value(to)}, before it in the file"


def _cycle(_shown: bytes, to: bytes, length: int, _b: int) -> Words:
    circle = "it is its own parent" if length == 1 else f"among its own ancestors, {length:,} in a circle"
    return circle, _parent(to)


def _missing_parent(shown: bytes, to: bytes, _a: int, _b: int) -> Words:
    return f"the parent {_value(shown) or 'it names'} is not in the file", _parent(to)


def _unreachable(_shown: bytes, _to: bytes, count: int, line: int) -> Words:
    whose = "it hangs" if count == 1 else f"it and {_number(count - 1, 'other')} hang"
    return f"{whose} on line {line}, and no way leads there from a root", ""


def _target(shown: bytes, what: str) -> str:
    return f"the {what} {_value(shown)} is not in the file" if shown else f"it names no {what}"


def _label_target(shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return _target(shown, "target"), ""


def _compaction_target(shown: bytes, _to: bytes, what: int, _b: int) -> Words:
    if what == 0:
        return _target(shown, "first kept entry"), ""
    text = "is not above it in the tree" if what == 1 else "is the number of no entry before it"
    return f"the first kept entry {_value(shown)} {text}", ""


def _result_without_call(shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    call = f"the tool call {_value(shown)}" if shown else "no tool call"
    return f"a tool's result, but {call} {'does not stand' if shown else 'stands'} before it", ""


def _large(_shown: bytes, _to: bytes, length: int, images: int) -> Words:
    share = f", {100 * images // length} % of it images" if images else ""
    return f"the line has {length:,} bytes{share}", ""


def _clock(_shown: bytes, _to: bytes, ms: int, _b: int) -> Words:
    return f"the clock goes back by {ms / 1000:,.0f} seconds", ""


def _lost_image(shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return f"an image that was moved out is lost: {_decoded(shown)}", ""


def _damaged_image(shown: bytes, _to: bytes, _a: int, _b: int) -> Words:
    return f"an image that was moved out is damaged: {_decoded(shown)}", ""


# What is wrong, and what a repair does about it, from what the core says of a finding of each kind.
_WORDS: Final[dict[Kind, Callable[[bytes, bytes, int, int], Words]]] = {
    "malformed": _malformed,
    "glued": _glued,
    "nul": _nul,
    "torn": _torn,
    "unterminated": _unterminated,
    "foreign": _foreign,
    "nameless": _nameless,
    "unknown-type": _unknown_type,
    "header": _header,
    "unusable": _unusable,
    "duplicate": _duplicate,
    "cycle": _cycle,
    "missing-parent": _missing_parent,
    "unreachable": _unreachable,
    "label-target": _label_target,
    "compaction-target": _compaction_target,
    "edit-target": _label_target,
    "result-without-call": _result_without_call,
    "large": _large,
    "clock": _clock,
    "lost-image": _lost_image,
    "damaged-image": _damaged_image,
}
