"""Older versions of the format, brought to the current one.

Version 1 has no tree: entries get an ``id`` and, as ``parentId``, the id of the entry before; a
compaction's ``firstKeptEntryIndex`` becomes ``firstKeptEntryId``. Up to version 2 the role of an
extension's message was ``hookMessage``; it is ``custom`` now. The header's ``version`` becomes 3.

Unlike pi 1.6.0, which writes every line anew from what it parsed:

- ids that are strings and stand once stay, so that labels and context edits still find them;
- new ids derive from line number and line, so that every program arrives at the same ones, whether
  it migrates the file or only reads it. Ids of an own `Host` are used if one was given;
- a ``firstKeptEntryIndex`` that names no entry up to the compaction keeps everything from the
  previous compaction's boundary on, where pi keeps nothing;
- all bytes that need not change are copied: blank lines, broken ones, numbers beyond a double.

`migrated_parts` works on files, `migrate_session_entries` on lists of entries.
"""

from __future__ import annotations

from sessiontree import jsontext
from sessiontree._native import Migration, derived_id, splice_members
from sessiontree.entries import CURRENT_SESSION_VERSION, UNSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from sessiontree._native import Store
    from sessiontree.entries import JsonObject
    from sessiontree.host import Host

_TREE_VERSION: Final = 2
_DRAWS: Final = 100
_DECIMAL: Final = frozenset("0123456789+-.eE")
_NAN: Final = float("nan")


def header_version(header: Any) -> float:
    """Give the version that a header names, as JavaScript's ``Number()`` reads it.

    Args:
        header: the header; a missing or null ``version`` is 1.

    Returns:
        The version; NaN for what is no number, which no migration touches.

    Example:
        >>> [header_version({"version": v}) for v in (None, 3, "2", "abc")]
        [1, 3.0, 2.0, nan]
    """
    version = header.get("version") if isinstance(header, dict) else None
    # An array is read by its text: that of its only element, or none.
    while isinstance(version, list) and len(version) == 1 and not isinstance(version[0], bool):
        version = "" if version[0] is None else version[0]
    if version is None:
        return 1
    if isinstance(version, list):
        return _NAN if version else 0
    return _number_of(version)


def _number_of(value: Any) -> float:
    if isinstance(value, str):
        return _number_of_text(jsontext.trim(value))
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except TypeError:
        return _NAN


def _number_of_text(text: str) -> float:
    if not text:
        return 0
    if text in ("Infinity", "+Infinity", "-Infinity"):
        return float(text)
    base = {"0x": 16, "0o": 8, "0b": 2}.get(text[:2].lower())
    try:
        if base is not None:
            digits = text[2:]
            return float(int(digits, base)) if digits.isalnum() and digits.isascii() else _NAN
        return float(text) if _DECIMAL.issuperset(text) else _NAN
    except ValueError:
        return _NAN
    except OverflowError:
        return float("inf")


_FIRST_UNKNOWN_VERSION = CURRENT_SESSION_VERSION + 1


def is_newer(header: Any) -> bool:
    """Say whether a file with this header is of a version to come: it is read, and never written.

    Example:
        >>> is_newer({"type": "session", "version": 4}), is_newer({"type": "session", "version": 3})
        (True, False)
    """
    return header_version(header) >= _FIRST_UNKNOWN_VERSION


def needs_migration(header: Any) -> bool:
    """Say whether a file with this header is of an older version.

    Example:
        >>> needs_migration({"type": "session"}), needs_migration({"type": "session", "version": 3})
        (True, False)
    """
    return header_version(header) < CURRENT_SESSION_VERSION


def migrated_parts(store: Store, host: Host | None = None) -> Migration:
    r"""Give the bytes of a file of version 1 or 2 as one of version 3, in parts of about 1 MiB.

    Args:
        store: the scanned file, which must not be replaced meanwhile.
        host: where new ids come from: one draw a line that is no header, of which the first eight
            characters are the id, drawn anew while it is taken. Without an own host, ids derive
            from line number and line.

    Raises:
        SessionFileLostError: the file changed while it was read.

    Example:
        >>> from sessiontree._native import Store
        >>> old = Store.memory(b'{"type":"session","id":"s"}\n{"type":"custom"}\n')
        >>> b"".join(migrated_parts(old)).splitlines()[1]
        b'{"type":"custom","id":"58f1ab5a","parentId":null}'
    """
    give_ids = header_version(jsontext.loads(store.header())) < _TREE_VERSION
    if not give_ids or host is None or host.is_default:
        return Migration(store, give_ids=give_ids)
    draw = _Draw(host.uuid4, lambda taken: store.find(taken) is not None)
    ids = [jsontext.dumps(draw()) for _ in range(len(store))]
    return Migration(store, give_ids=True, ids=ids)


class _Draw:
    """New ids from a source of UUIDs; none that was given before, or that is taken."""

    def __init__(self, uuid4: Callable[[], str], is_taken: Callable[[str], bool]) -> None:
        self._uuid4 = uuid4
        self._is_taken = is_taken
        self._given: set[str] = set()

    def __call__(self) -> str:
        for _ in range(_DRAWS):
            id = self._uuid4()[:8]
            if id not in self._given and not self._is_taken(id):
                break
        else:
            id = self._uuid4()
        self._given.add(id)
        return id


def splice(line: bytes, members: dict[str, bytes]) -> bytes:
    """Replace or add members of an object's text, leaving all other bytes as they are.

    Args:
        line: the text of a JSON object.
        members: JSON text by key; keys that are not there yet are added at the end, in this order.

    Raises:
        ValueError: the line holds no object, or a value is no JSON.

    Example:
        >>> splice(b'{"n": 1.50, "id": "a"}', {"id": b'"b"', "v": b"3"})
        b'{"n": 1.50, "id": "b","v":3}'
    """
    return splice_members(line, members)


def migrate_session_entries(entries: Sequence[Any], *, host: Host | None = None) -> list[Any]:
    """Bring the values of a session file to the current version.

    Args:
        entries: header and entries in file order, as `load_entries_from_file` gives them; without
            a header they are of version 1. They are not changed.
        host: as in `migrated_parts`. Derived ids take an entry's place and its text as
            `jsontext.dumps` writes it for line number and line; these are the ids of the migrated
            file if it was written by pi and has no blank or broken lines.

    Returns:
        A new list; what need not change is the very value of ``entries``. pi changes its argument
        instead and returns nothing.

    Example:
        >>> migrate_session_entries([{"type": "session", "version": 1}, {"type": "custom"}])
        [{'type': 'session', 'version': 3}, {'type': 'custom', 'id': '58f1ab5a', 'parentId': None}]
    """
    header = next((entry for entry in entries if _type(entry) == "session"), None)
    version = header_version(header)
    if not version < CURRENT_SESSION_VERSION:
        return list(entries)
    migrated = list(entries) if version >= _TREE_VERSION else _with_tree(entries, host)
    return [_current(entry) for entry in migrated]


def _type(entry: Any) -> Any:
    return entry.get("type") if isinstance(entry, dict) else None


def _current(entry: Any) -> Any:
    """Version 2 to 3 of one entry."""
    if _type(entry) == "session":
        return {**entry, "version": CURRENT_SESSION_VERSION}
    message = entry.get("message") if _type(entry) == "message" else None
    if isinstance(message, dict) and message.get("role") == "hookMessage":
        return {**entry, "message": {**message, "role": "custom"}}
    return entry


def _with_tree(entries: Sequence[Any], host: Host | None) -> list[Any]:
    """Version 1 to 2: ids, parents, and what compactions keep."""
    owners = {
        entry["id"]: place
        for place, entry in enumerate(entries)
        if isinstance(entry, dict) and entry.get("type") != "session" and isinstance(entry.get("id"), str)
    }
    owners.pop("", None)
    ids = _ids(entries, owners, host)
    migrated = list(entries)
    parent: str | None = None
    boundary: int | None = None
    for place, id in enumerate(ids):
        if id is None:
            continue
        migrated[place] = entry = {**entries[place], "id": id, "parentId": parent}
        parent = id
        if entry.get("type") == "compaction":
            wanted = _place_of(entry.get("firstKeptEntryIndex"), place, entries, ids)
            boundary = _keep(entry, place, ids, owners, wanted, boundary)
        elif boundary is None:
            boundary = place
    return migrated


def _ids(entries: Sequence[Any], owners: dict[str, int], host: Host | None) -> list[str | None]:
    """The id of each entry; None for headers, and for values that have no place for one."""
    given = None if host is None or host.is_default else _Draw(host.uuid4, owners.__contains__)
    derived: set[str] = set()
    ids: list[str | None] = []
    for place, entry in enumerate(entries):
        if _type(entry) == "session":
            ids.append(None)
            continue
        drawn = None if given is None else given()
        if not isinstance(entry, dict):
            ids.append(None)
        elif isinstance(entry.get("id"), str) and owners.get(entry["id"]) == place:
            ids.append(entry["id"])
        else:
            ids.append(drawn or _derive(place + 1, entry, owners, derived))
    return ids


def _derive(line_number: int, entry: JsonObject, owners: dict[str, int], derived: set[str]) -> str:
    text = jsontext.dumps(entry)
    attempt = 0
    id = derived_id(line_number, text)
    while id in owners or id in derived:
        attempt += 1
        id = derived_id(line_number, text, attempt)
    derived.add(id)
    return id


def _place_of(index: Any, own: int, entries: Sequence[Any], ids: Sequence[str | None]) -> int | None:
    """The place that an index up to the compaction's own means: if it can have no id the next one."""
    if isinstance(index, bool) or not isinstance(index, int | float):
        return None
    if not 0 <= index <= own or index != int(index) or _type(entries[int(index)]) == "session":
        return None
    if index == own:
        return own
    return next((place for place in range(int(index), own) if ids[place] is not None), None)


def _keep(
    compaction: JsonObject,
    place: int,
    ids: Sequence[str | None],
    owners: dict[str, int],
    wanted: int | None,
    boundary: int | None,
) -> int:
    """Turn a compaction's index into an id; gives the place of the first entry it keeps."""
    index = compaction.get("firstKeptEntryIndex", UNSET)
    kept_id = compaction.get("firstKeptEntryId")
    named = owners.get(kept_id, place) if isinstance(kept_id, str) else place
    kept = wanted
    if kept is None and index is not UNSET and named >= place:
        kept = boundary
    if kept is not None:
        compaction["firstKeptEntryId"] = ids[kept]
    if isinstance(index, int | float) and not isinstance(index, bool):
        del compaction["firstKeptEntryIndex"]
    return min(named, place) if kept is None else kept
