"""What makes entries a session: the words of the format, ids, and what refers to them.

A pattern may match any of them. If they changed, an exported branch would be no session any more, and tool
results would belong to no call; so they stay, and nothing of it is a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree._images import is_mark
from sessiontree.export.markdown import is_image_data

if TYPE_CHECKING:
    from collections.abc import Iterable

_TIES = ("id", "parentId", "targetId", "firstKeptEntryId", "fromId")

_KEYS = """
    api arguments argumentsBytes argumentsError cacheRead cacheWrite cacheWrite1h calls cancelled
    code command complete content context cost customType cwd data deferred details diagnostics
    display durationMs endTurn error errorMessage excludeFromContext exitCode firstKeptEntryId
    firstKeptEntryIndex fromHook fromId fullOutputPath id input isError kind label message mimeType
    model modelId name namespace nestedCalls note output parentId parentSession provider
    providerThinkingLevel rawStopReason reasoning replacement responseId responseModel role
    sections status stopReason summary targetId text textSignature thinking thinkingLevel
    thinkingSignature thoughtSignature timestamp tokensBefore toolCallId toolName toolsAdded
    toolsRemoved total totalTokens truncated type types usage version
"""
_TYPES = """
    active_tools_change branch_summary compaction context_edit custom custom_message label leaf
    message model_change session session_info thinking_level_change usage
"""
_ROLES = """
    assistant bashExecution branchSummary compactionSummary custom hookMessage system toolResult
    user
"""

KEYS = frozenset(_KEYS.split())
"""Keys that are never renamed."""

TYPES = frozenset(_TYPES.split())
ROLES = frozenset(_ROLES.split())
BLOCKS = frozenset(["image", "text", "thinking", "toolCall"])


def restore_structure(copy: dict[str, Any], entry: dict[str, Any]) -> None:
    """Give a copy back what makes the entry one of a session."""
    _keep(copy, entry, _TIES)
    _keep(copy, entry, ("type",), TYPES)
    _restore_blocks(copy, entry)
    for name in ("message", "replacement"):
        message = entry.get(name)
        if isinstance(message, dict):
            _keep(copy[name], message, ("toolCallId",))
            _keep(copy[name], message, ("role",), ROLES)
            _restore_blocks(copy[name], message)


def _restore_blocks(copy: dict[str, Any], message: dict[str, Any]) -> None:
    blocks = message.get("content")
    for at, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if isinstance(block, dict):
            _keep(copy["content"][at], block, ("type",), BLOCKS)
            if block.get("type") == "toolCall":
                _keep(copy["content"][at], block, ("id",))
            elif is_image(block):
                _keep(copy["content"][at], block, ("mimeType",))


def _keep(
    copy: dict[str, Any], entry: dict[str, Any], names: Iterable[str], words: frozenset[str] | None = None
) -> None:
    """Give members back that are texts, of some words if these are given."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and (words is None or value in words):
            copy[name] = value


def is_image(block: dict[str, Any]) -> bool:
    """Say whether this is a picture: its base64 is no text, though it may look like a key by chance.

    So is what stands for one that was moved out.
    """
    data, kind = block.get("data"), block.get("mimeType")
    if is_mark(data):
        return True
    if block.get("type") != "image" or not isinstance(data, str) or not isinstance(kind, str):
        return False
    return is_image_data(kind, data)
