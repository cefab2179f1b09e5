"""The shapes of a session file's objects, as type checkers see them.

These are the types behind :mod:`sessiontree.entries`; import them from there. They live apart
because ``typing`` costs a third of what ``import sessiontree`` may cost, and at run time entries
and messages are plain dicts. Files of other writers may hold more keys and other types: nothing
here is enforced on what is read.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

JsonObject: TypeAlias = dict[str, Any]


class TextContent(TypedDict):
    """A block of text."""

    type: Literal["text"]
    text: str
    textSignature: NotRequired[str]


class ThinkingContent(TypedDict):
    """A block of the model's reasoning; ``redacted`` ones carry only the signature."""

    type: Literal["thinking"]
    thinking: str
    thinkingSignature: NotRequired[str]
    redacted: NotRequired[bool]


class ImageContent(TypedDict):
    """An image, base64 in ``data``."""

    type: Literal["image"]
    data: str
    mimeType: str


class ToolCall(TypedDict):
    """A call the model makes; its result is a message of role ``toolResult`` with the same id."""

    type: Literal["toolCall"]
    id: str
    name: str
    arguments: JsonObject
    thoughtSignature: NotRequired[str]
    namespace: NotRequired[str]
    argumentsError: NotRequired[str]


UserContent: TypeAlias = TextContent | ImageContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall


class UsageCost(TypedDict):
    """Cost in dollars; ``total`` is the billed amount where ``totalFromProvider`` is true."""

    input: float
    output: float
    cacheRead: float
    cacheWrite: float
    total: float
    totalFromProvider: NotRequired[bool]


class Usage(TypedDict):
    """Tokens of one model call, and what they cost."""

    input: int
    output: int
    cacheRead: int
    cacheWrite: int
    cacheWrite1h: NotRequired[int]
    reasoning: NotRequired[int]
    totalTokens: int
    cost: UsageCost


class SystemMessage(TypedDict):
    """Instructions; later ones patch named sections (``None`` removes one) and the set of tools."""

    role: Literal["system"]
    content: str | list[TextContent]
    sections: NotRequired[dict[str, str | None]]
    toolsAdded: NotRequired[list[JsonObject]]
    toolsRemoved: NotRequired[list[JsonObject]]
    timestamp: int


class UserMessage(TypedDict):
    """What the user said; ``timestamp`` in milliseconds since 1970."""

    role: Literal["user"]
    content: str | list[UserContent]
    timestamp: int


class AssistantMessage(TypedDict):
    """One answer of a model."""

    role: Literal["assistant"]
    content: list[AssistantContent]
    api: str
    provider: str
    model: str
    responseModel: NotRequired[str]
    responseId: NotRequired[str]
    providerThinkingLevel: NotRequired[str]
    thinkingLevel: NotRequired[str]
    diagnostics: NotRequired[list[JsonObject]]
    usage: Usage
    stopReason: Literal["pending", "stop", "length", "toolUse", "error", "aborted", "deferred"]
    deferred: NotRequired[JsonObject]
    errorMessage: NotRequired[str]
    rawStopReason: NotRequired[str]
    endTurn: NotRequired[bool]
    timestamp: int
    durationMs: NotRequired[float]


class NestedToolCall(TypedDict):
    """A call that a tool made by itself."""

    id: str
    name: str
    arguments: NotRequired[JsonObject]
    argumentsBytes: NotRequired[int]
    status: Literal["ok", "error", "unfinished"]
    durationMs: NotRequired[float]
    error: NotRequired[str]


class NestedToolCalls(TypedDict):
    """The calls a tool made by itself; ``complete`` is false where some were left out."""

    calls: list[NestedToolCall]
    complete: bool


class ToolResultMessage(TypedDict):
    """The result of the tool call ``toolCallId``."""

    role: Literal["toolResult"]
    toolCallId: str
    toolName: str
    content: list[UserContent]
    details: NotRequired[Any]
    usage: NotRequired[Usage]
    nestedCalls: NotRequired[NestedToolCalls]
    isError: bool
    timestamp: int
    durationMs: NotRequired[float]


class BashExecutionMessage(TypedDict):
    """A command the user ran; ``exitCode`` is absent where it was killed."""

    role: Literal["bashExecution"]
    command: str
    output: str
    exitCode: NotRequired[int]
    cancelled: bool
    truncated: bool
    fullOutputPath: NotRequired[str]
    timestamp: int
    excludeFromContext: NotRequired[bool]


class CustomMessage(TypedDict):
    """What an extension says to the model."""

    role: Literal["custom"]
    customType: str
    content: str | list[UserContent]
    display: bool
    details: NotRequired[Any]
    timestamp: int


class BranchSummaryMessage(TypedDict):
    """In a context: what a branch_summary entry contributes."""

    role: Literal["branchSummary"]
    summary: str
    fromId: str | None
    timestamp: int


class CompactionSummaryMessage(TypedDict):
    """In a context: what a compaction entry contributes."""

    role: Literal["compactionSummary"]
    summary: str
    tokensBefore: int
    timestamp: int


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
AgentMessage: TypeAlias = (
    Message | BashExecutionMessage | CustomMessage | BranchSummaryMessage | CompactionSummaryMessage
)


class SessionHeader(TypedDict):
    """The first line of a session file; a missing ``version`` is 1."""

    type: Literal["session"]
    version: NotRequired[int]
    id: str
    timestamp: str
    cwd: str
    parentSession: NotRequired[str]


class _Node(TypedDict):
    """What every entry has: its id, its parent's (None for a root), and when it was written."""

    id: str
    parentId: str | None
    timestamp: str


class MessageEntry(_Node):
    """One message of the conversation."""

    type: Literal["message"]
    message: AgentMessage


class ThinkingLevelChangeEntry(_Node):
    """From here on the model thinks at ``thinkingLevel``."""

    type: Literal["thinking_level_change"]
    thinkingLevel: str


class ModelChangeEntry(_Node):
    """From here on this model answers."""

    type: Literal["model_change"]
    provider: str
    modelId: str


class UsageEntry(_Node):
    """Tokens spent outside the conversation, such as for warming a cache."""

    type: Literal["usage"]
    kind: str
    provider: str
    model: str
    usage: Usage
    note: NotRequired[str]


class CompactionEntry(_Node):
    """A summary that stands for everything before ``firstKeptEntryId``."""

    type: Literal["compaction"]
    summary: str
    firstKeptEntryId: str
    tokensBefore: int
    details: NotRequired[Any]
    usage: NotRequired[Usage]
    fromHook: NotRequired[bool]
    systemMessage: NotRequired[SystemMessage]


class BranchSummaryEntry(_Node):
    """What happened on a branch that was left; ``fromId`` is that branch's last entry."""

    type: Literal["branch_summary"]
    fromId: str
    summary: str
    details: NotRequired[Any]
    usage: NotRequired[Usage]
    fromHook: NotRequired[bool]


class CustomData(TypedDict):
    """The part of a custom entry that may be left out."""

    data: NotRequired[Any]


class CustomDetails(TypedDict):
    """The part of a custom message entry that may be left out."""

    details: NotRequired[Any]


class CustomEntry(_Node, CustomData):
    """State of an extension; the model never sees it."""

    type: Literal["custom"]
    customType: str


class CustomMessageEntry(_Node, CustomDetails):
    """What an extension says to the model; ``details`` stay with the program."""

    type: Literal["custom_message"]
    customType: str
    content: str | list[UserContent]
    display: bool


class ContextReplacement(TypedDict):
    """The content that a context edit puts in place of the target's."""

    content: str | list[UserContent] | list[AssistantContent]


class ContextEditEntry(_Node):
    """Changes what ``targetId`` contributes to the context; None takes the contribution out."""

    type: Literal["context_edit"]
    targetId: str
    replacement: ContextReplacement | None


class LabelEntry(_Node):
    """Names the entry ``targetId``; without a label the name is taken off."""

    type: Literal["label"]
    targetId: str
    label: NotRequired[str]


class SessionInfoEntry(_Node):
    """Names the session; an empty name takes the name off."""

    type: Literal["session_info"]
    name: NotRequired[str]


SessionEntry: TypeAlias = (
    MessageEntry
    | ThinkingLevelChangeEntry
    | ModelChangeEntry
    | UsageEntry
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | ContextEditEntry
    | LabelEntry
    | SessionInfoEntry
)
FileEntry: TypeAlias = SessionHeader | SessionEntry
