"""Context edits: what may be edited, and the form in which an edit is stored (docs/format.md)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessiontree.log import SessionLog

_MESSAGE, _CUSTOM_MESSAGE = 1, 8
_USER, _ASSISTANT, _TOOL_RESULT = 1, 2, 3


def checked_edit(log: SessionLog, leaf: int | None, row: int, target_id: str, replacement: Any) -> Any:
    """Give the replacement as it is stored, after all checks.

    Raises:
        ValueError: the target is not on the branch or cannot be edited, or the replacement has
            another form than None or ``{"content": text or blocks}``.
    """
    if replacement is not None and not _has_content(replacement):
        raise ValueError("the replacement must be None or {'content': a string or a list of blocks}")
    store = log.store
    if leaf is None or not store.on_path(row, leaf):
        raise ValueError(f"entry {target_id!r} is not on the current branch")
    kind, role = store.kind(row), store.role(row)
    editable = kind == _CUSTOM_MESSAGE or (kind == _MESSAGE and role in (_USER, _ASSISTANT, _TOOL_RESULT))
    if not editable:
        raise ValueError(f"entry {target_id!r} contributes nothing to the context that can be edited")
    blocks_only = kind == _MESSAGE and role in (_ASSISTANT, _TOOL_RESULT)
    if replacement is not None and blocks_only and isinstance(replacement["content"], str):
        return {"content": [{"type": "text", "text": replacement["content"]}]}
    return replacement


def _has_content(replacement: Any) -> bool:
    return isinstance(replacement, dict) and isinstance(replacement.get("content"), (str, list))
