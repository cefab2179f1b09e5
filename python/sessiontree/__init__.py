"""sessiontree: the conversation histories of AI agents, as trees in append-only files.

It reads and writes the session files of the pi coding agent (JSON Lines; each entry names its
parent). `SessionManager` is the way in; the free functions work on plain lists of entries.

Example:
    >>> from sessiontree import SessionManager
    >>> session = SessionManager.in_memory("/code")
    >>> question = session.append_message({"role": "user", "content": "hello", "timestamp": 0})
    >>> [m["content"] for m in session.build_session_context().messages]
    ['hello']
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from sessiontree.compaction import (
        BRANCH_SUMMARY_PREFIX as BRANCH_SUMMARY_PREFIX,
    )
    from sessiontree.compaction import (
        BRANCH_SUMMARY_SUFFIX as BRANCH_SUMMARY_SUFFIX,
    )
    from sessiontree.compaction import (
        COMPACTION_SUMMARY_PREFIX as COMPACTION_SUMMARY_PREFIX,
    )
    from sessiontree.compaction import (
        COMPACTION_SUMMARY_SUFFIX as COMPACTION_SUMMARY_SUFFIX,
    )
    from sessiontree.compaction import (
        DEFAULT_COMPACTION_SETTINGS as DEFAULT_COMPACTION_SETTINGS,
    )
    from sessiontree.compaction import (
        SUMMARIZATION_SYSTEM_PROMPT as SUMMARIZATION_SYSTEM_PROMPT,
    )
    from sessiontree.compaction import (
        CompactionPreparation as CompactionPreparation,
    )
    from sessiontree.compaction import (
        CompactionResult as CompactionResult,
    )
    from sessiontree.compaction import (
        Compactor as Compactor,
    )
    from sessiontree.compaction import (
        RetryCallbacks as RetryCallbacks,
    )
    from sessiontree.compaction import (
        RetryPolicy as RetryPolicy,
    )
    from sessiontree.compaction import (
        Summarizer as Summarizer,
    )
    from sessiontree.compaction import (
        SummaryRequest as SummaryRequest,
    )
    from sessiontree.compaction import (
        SummaryResponse as SummaryResponse,
    )
    from sessiontree.compaction import (
        calculate_context_tokens as calculate_context_tokens,
    )
    from sessiontree.compaction import (
        collect_entries_for_branch_summary as collect_entries_for_branch_summary,
    )
    from sessiontree.compaction import (
        combine_usage as combine_usage,
    )
    from sessiontree.compaction import (
        compact as compact,
    )
    from sessiontree.compaction import (
        compute_file_lists as compute_file_lists,
    )
    from sessiontree.compaction import (
        convert_to_llm as convert_to_llm,
    )
    from sessiontree.compaction import (
        create_file_ops as create_file_ops,
    )
    from sessiontree.compaction import (
        estimate_context_tokens as estimate_context_tokens,
    )
    from sessiontree.compaction import (
        estimate_projected_context_tokens as estimate_projected_context_tokens,
    )
    from sessiontree.compaction import (
        estimate_tokens as estimate_tokens,
    )
    from sessiontree.compaction import (
        extract_file_ops_from_message as extract_file_ops_from_message,
    )
    from sessiontree.compaction import (
        find_cut_point as find_cut_point,
    )
    from sessiontree.compaction import (
        find_turn_start_index as find_turn_start_index,
    )
    from sessiontree.compaction import (
        format_file_operations as format_file_operations,
    )
    from sessiontree.compaction import (
        generate_branch_summary as generate_branch_summary,
    )
    from sessiontree.compaction import (
        generate_summary as generate_summary,
    )
    from sessiontree.compaction import (
        generate_summary_with_usage as generate_summary_with_usage,
    )
    from sessiontree.compaction import (
        get_last_assistant_usage as get_last_assistant_usage,
    )
    from sessiontree.compaction import (
        get_usage_cost_breakdown as get_usage_cost_breakdown,
    )
    from sessiontree.compaction import (
        navigate as navigate,
    )
    from sessiontree.compaction import (
        prepare_branch_entries as prepare_branch_entries,
    )
    from sessiontree.compaction import (
        prepare_compaction as prepare_compaction,
    )
    from sessiontree.compaction import (
        serialize_conversation as serialize_conversation,
    )
    from sessiontree.compaction import (
        serialize_session_branch as serialize_session_branch,
    )
    from sessiontree.compaction import (
        should_compact as should_compact,
    )
    from sessiontree.context import (
        ProjectedEntry as ProjectedEntry,
    )
    from sessiontree.context import (
        SessionContext as SessionContext,
    )
    from sessiontree.context import (
        SessionProjection as SessionProjection,
    )
    from sessiontree.context import (
        build_context_entries as build_context_entries,
    )
    from sessiontree.context import (
        build_session_context as build_session_context,
    )
    from sessiontree.context import (
        build_session_projection as build_session_projection,
    )
    from sessiontree.context import (
        get_latest_compaction_entry as get_latest_compaction_entry,
    )
    from sessiontree.context import (
        project_context_entry as project_context_entry,
    )
    from sessiontree.context import (
        session_entry_to_context_messages as session_entry_to_context_messages,
    )
    from sessiontree.entries import (
        CURRENT_SESSION_VERSION as CURRENT_SESSION_VERSION,
    )
    from sessiontree.entries import (
        UNSET as UNSET,
    )
    from sessiontree.entries import (
        assert_valid_session_id as assert_valid_session_id,
    )
    from sessiontree.exceptions import (
        BrokenTreeWarning as BrokenTreeWarning,
    )
    from sessiontree.exceptions import (
        ConcurrentWriterWarning as ConcurrentWriterWarning,
    )
    from sessiontree.exceptions import (
        CorruptSessionError as CorruptSessionError,
    )
    from sessiontree.exceptions import (
        EntryNotFoundError as EntryNotFoundError,
    )
    from sessiontree.exceptions import (
        InvalidJSONError as InvalidJSONError,
    )
    from sessiontree.exceptions import (
        InvalidSessionError as InvalidSessionError,
    )
    from sessiontree.exceptions import (
        InvalidSessionIdError as InvalidSessionIdError,
    )
    from sessiontree.exceptions import (
        ReadOnlySessionError as ReadOnlySessionError,
    )
    from sessiontree.exceptions import (
        SessionClosedError as SessionClosedError,
    )
    from sessiontree.exceptions import (
        SessionConflictError as SessionConflictError,
    )
    from sessiontree.exceptions import (
        SessionFileLostError as SessionFileLostError,
    )
    from sessiontree.exceptions import (
        SessionReplacedWarning as SessionReplacedWarning,
    )
    from sessiontree.exceptions import (
        SessionTreeError as SessionTreeError,
    )
    from sessiontree.exceptions import (
        SessionWarning as SessionWarning,
    )
    from sessiontree.exceptions import (
        SettingsError as SettingsError,
    )
    from sessiontree.exceptions import (
        SummarizationError as SummarizationError,
    )
    from sessiontree.exceptions import (
        TornWriteWarning as TornWriteWarning,
    )
    from sessiontree.exceptions import (
        UnsupportedVersionError as UnsupportedVersionError,
    )
    from sessiontree.host import (
        Host as Host,
    )
    from sessiontree.listing import (
        SessionInfo as SessionInfo,
    )
    from sessiontree.listing import (
        find_most_recent_session as find_most_recent_session,
    )
    from sessiontree.listing import (
        iter_sessions as iter_sessions,
    )
    from sessiontree.loading import (
        load_entries_from_file as load_entries_from_file,
    )
    from sessiontree.loading import (
        parse_session_entries as parse_session_entries,
    )
    from sessiontree.manager import (
        SessionManager as SessionManager,
    )
    from sessiontree.migrations import migrate_session_entries as migrate_session_entries
    from sessiontree.paths import (
        get_default_session_dir as get_default_session_dir,
    )
    from sessiontree.report import (
        OpenReport as OpenReport,
    )
    from sessiontree.report import (
        SkippedLine as SkippedLine,
    )
    from sessiontree.settings import (
        SETTINGS_DEFAULTS as SETTINGS_DEFAULTS,
    )
    from sessiontree.settings import (
        SettingsManager as SettingsManager,
    )
    from sessiontree.tree import (
        TreeNode as TreeNode,
    )

# Where each public name lives. A module is imported when one of its names is first asked for, so that
# importing the package costs a few milliseconds.
_HOMES: Final = {
    "sessiontree.compaction": (
        "BRANCH_SUMMARY_PREFIX",
        "BRANCH_SUMMARY_SUFFIX",
        "COMPACTION_SUMMARY_PREFIX",
        "COMPACTION_SUMMARY_SUFFIX",
        "CompactionPreparation",
        "CompactionResult",
        "Compactor",
        "DEFAULT_COMPACTION_SETTINGS",
        "RetryCallbacks",
        "RetryPolicy",
        "SUMMARIZATION_SYSTEM_PROMPT",
        "Summarizer",
        "SummaryRequest",
        "SummaryResponse",
        "calculate_context_tokens",
        "collect_entries_for_branch_summary",
        "combine_usage",
        "compact",
        "compute_file_lists",
        "convert_to_llm",
        "create_file_ops",
        "estimate_context_tokens",
        "estimate_projected_context_tokens",
        "estimate_tokens",
        "extract_file_ops_from_message",
        "find_cut_point",
        "find_turn_start_index",
        "format_file_operations",
        "generate_branch_summary",
        "generate_summary",
        "generate_summary_with_usage",
        "get_last_assistant_usage",
        "get_usage_cost_breakdown",
        "navigate",
        "prepare_branch_entries",
        "prepare_compaction",
        "serialize_conversation",
        "serialize_session_branch",
        "should_compact",
    ),
    "sessiontree.context": (
        "ProjectedEntry",
        "SessionContext",
        "SessionProjection",
        "build_context_entries",
        "build_session_context",
        "build_session_projection",
        "get_latest_compaction_entry",
        "project_context_entry",
        "session_entry_to_context_messages",
    ),
    "sessiontree.entries": (
        "CURRENT_SESSION_VERSION",
        "UNSET",
        "assert_valid_session_id",
    ),
    "sessiontree.exceptions": (
        "BrokenTreeWarning",
        "ConcurrentWriterWarning",
        "CorruptSessionError",
        "EntryNotFoundError",
        "InvalidJSONError",
        "InvalidSessionError",
        "InvalidSessionIdError",
        "ReadOnlySessionError",
        "SessionClosedError",
        "SessionConflictError",
        "SessionFileLostError",
        "SessionReplacedWarning",
        "SessionTreeError",
        "SessionWarning",
        "SettingsError",
        "SummarizationError",
        "TornWriteWarning",
        "UnsupportedVersionError",
    ),
    "sessiontree.host": ("Host",),
    "sessiontree.listing": (
        "SessionInfo",
        "find_most_recent_session",
        "iter_sessions",
    ),
    "sessiontree.loading": (
        "load_entries_from_file",
        "parse_session_entries",
    ),
    "sessiontree.manager": ("SessionManager",),
    "sessiontree.migrations": ("migrate_session_entries",),
    "sessiontree.paths": ("get_default_session_dir",),
    "sessiontree.report": (
        "OpenReport",
        "SkippedLine",
    ),
    "sessiontree.settings": (
        "SETTINGS_DEFAULTS",
        "SettingsManager",
    ),
    "sessiontree.tree": ("TreeNode",),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name == "__version__":
        from sessiontree._native import VERSION

        return VERSION
    if name == "__all__":
        return __dir__()
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(name for names in _HOMES.values() for name in names)
