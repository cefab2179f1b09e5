"""Which files a conversation read and changed: gathered from tool calls, carried from summary to summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSet
from dataclasses import dataclass, field
from typing import Any

from sessiontree._jsvalues import member, role_of, truthy
from sessiontree.jsontext import utf16_sort_key


class OrderedSet(MutableSet[str]):
    """A set of texts that keeps the order in which they were added."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[str] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)!r})"

    def add(self, item: str) -> None:
        """Add an item at the end, unless it is there."""
        self._items[item] = None

    def discard(self, item: str) -> None:
        """Remove an item, if it is there."""
        self._items.pop(item, None)

    def update(self, items: Iterable[str]) -> None:
        """Add several items."""
        self._items.update(dict.fromkeys(items))


@dataclass(slots=True)
class FileOperations:
    """Paths by what was done to them, in the order they were met.

    Attributes:
        read: paths of ``read`` calls.
        written: paths of ``write`` calls.
        edited: paths of ``edit`` calls, and of files that an earlier summary lists as modified.
    """

    read: OrderedSet = field(default_factory=OrderedSet)
    written: OrderedSet = field(default_factory=OrderedSet)
    edited: OrderedSet = field(default_factory=OrderedSet)


@dataclass(frozen=True, slots=True)
class FileLists:
    """Sorted paths: those only read, and those changed."""

    read_files: list[str]
    modified_files: list[str]


def create_file_ops() -> FileOperations:
    """An empty record of file operations."""
    return FileOperations()


def extract_file_ops_from_message(message: Any, file_ops: FileOperations) -> None:
    """Add the files that a message's tool calls name to ``file_ops``.

    Counted are the calls ``read``, ``write`` and ``edit`` of an assistant message, and the nested calls
    that a tool result records, each with a ``path`` that is a text and not empty.

    Example:
        >>> from sessiontree.compaction import create_file_ops, extract_file_ops_from_message
        >>> ops = create_file_ops()
        >>> call = {"type": "toolCall", "name": "edit", "arguments": {"path": "a.py"}}
        >>> extract_file_ops_from_message({"role": "assistant", "content": [call]}, ops)
        >>> list(ops.edited)
        ['a.py']
    """
    role = role_of(message)
    if role == "toolResult":
        for call in _list_of(member(member(message, "nestedCalls"), "calls")):
            _add_call(call, file_ops)
    elif role == "assistant":
        for block in _list_of(member(message, "content")):
            if member(block, "type") == "toolCall":
                _add_call(block, file_ops)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _add_call(call: Any, file_ops: FileOperations) -> None:
    path = member(member(call, "arguments"), "path")
    if not isinstance(path, str) or not path:
        return
    match member(call, "name"):
        case "read":
            file_ops.read.add(path)
        case "write":
            file_ops.written.add(path)
        case "edit":
            file_ops.edited.add(path)


def add_summary_details(entry: Mapping[str, Any], file_ops: FileOperations) -> None:
    """Take over the files that an earlier summary's entry lists, unless a hook made that summary."""
    if truthy(entry.get("fromHook")):
        return
    details = entry.get("details")
    file_ops.read.update(_texts(member(details, "readFiles")))
    file_ops.edited.update(_texts(member(details, "modifiedFiles")))


def _texts(value: Any) -> Iterator[str]:
    return (item for item in _list_of(value) if isinstance(item, str))


def compute_file_lists(file_ops: FileOperations) -> FileLists:
    """Sort what was gathered: a file that was changed counts as modified only.

    The order is that of UTF-16 units, as JavaScript sorts.
    """
    modified = {*file_ops.edited, *file_ops.written}
    return FileLists(
        read_files=_sorted(path for path in file_ops.read if path not in modified),
        modified_files=_sorted(modified),
    )


def _sorted(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=utf16_sort_key)


def format_file_operations(read_files: Iterable[str], modified_files: Iterable[str]) -> str:
    r"""The blocks that end a summary, each list in its tag; nothing if both are empty.

    Example:
        >>> from sessiontree.compaction import format_file_operations
        >>> format_file_operations(["a"], [])
        '\n\n<read-files>\na\n</read-files>'
    """
    lists = (("read-files", list(read_files)), ("modified-files", list(modified_files)))
    blocks = ["\n".join((f"<{tag}>", *paths, f"</{tag}>")) for tag, paths in lists if paths]
    return "".join(f"\n\n{block}" for block in blocks)
