"""Whole session files and texts as lists of dicts, for programs that want them all at once.

Opening a `SessionManager` is the faster way where not everything is looked at.
"""

from __future__ import annotations

from sessiontree import jsontext
from sessiontree.paths import normalize_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Any

_BOM = b"\xef\xbb\xbf"


def load_entries_from_file(path: str | os.PathLike[str], *, seal: bool = False) -> list[Any]:
    """Read the header and all entries of a session file, as they stand there.

    Lines that are no JSON are passed over, and so are ``null``, ``false``, ``0`` and ``""``. Nothing
    is migrated.

    Args:
        path: the file; ``~`` and ``file://`` are understood.
        seal: close a last line that lacks its newline, as pi does when it reads.

    Returns:
        Header first; an empty list if the file is missing or is no session.

    Raises:
        OSError: the file cannot be read or, with ``seal``, written.

    Example:
        >>> load_entries_from_file("missing.jsonl")
        []
    """
    name = normalize_path(path)
    try:
        with open(name, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    entries = list(_values(data))
    if not entries or not _is_header(entries[0]):
        return []
    if seal and not data.endswith(b"\n"):
        with open(name, "ab") as file:
            file.write(b"\n")
    return entries


def _values(data: bytes) -> Iterator[Any]:
    first = True
    for line in data.split(b"\n"):
        if not line or line.isspace():  # a refusal costs 20 µs, and blank lines can be a million
            continue
        try:
            value = jsontext.loads(line.removeprefix(_BOM) if first else line)
        except jsontext.InvalidJSONError:
            continue
        if value or isinstance(value, (dict, list)):
            first = False
            yield value


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "session" and isinstance(value.get("id"), str)


def parse_session_entries(content: str) -> list[Any]:
    r"""Read the lines of a session file's text; lines that are no JSON are passed over.

    Example:
        >>> parse_session_entries('{"type":"session","id":"a"}\nnonsense\n')
        [{'type': 'session', 'id': 'a'}]
    """
    values = []
    for line in jsontext.trim(content).split("\n"):
        if not line or line.isspace():
            continue
        try:
            values.append(jsontext.loads(line))
        except jsontext.InvalidJSONError:
            continue
    return values
