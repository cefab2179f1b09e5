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

    from sessiontree.context import (
        ProjectedEntry as ProjectedEntry,
        SessionContext as SessionContext,
        SessionProjection as SessionProjection,
        build_context_entries as build_context_entries,
        build_session_context as build_session_context,
        build_session_projection as build_session_projection,
        get_latest_compaction_entry as get_latest_compaction_entry,
        project_context_entry as project_context_entry,
        session_entry_to_context_messages as session_entry_to_context_messages,
    )
    from sessiontree.entries import (
        CURRENT_SESSION_VERSION as CURRENT_SESSION_VERSION,
        UNSET as UNSET,
        assert_valid_session_id as assert_valid_session_id,
    )
    from sessiontree.exceptions import (
        BrokenTreeWarning as BrokenTreeWarning,
        ConcurrentWriterWarning as ConcurrentWriterWarning,
        CorruptSessionError as CorruptSessionError,
        EntryNotFoundError as EntryNotFoundError,
        InvalidJSONError as InvalidJSONError,
        InvalidSessionError as InvalidSessionError,
        InvalidSessionIdError as InvalidSessionIdError,
        ReadOnlySessionError as ReadOnlySessionError,
        SessionClosedError as SessionClosedError,
        SessionConflictError as SessionConflictError,
        SessionFileLostError as SessionFileLostError,
        SessionReplacedWarning as SessionReplacedWarning,
        SessionTreeError as SessionTreeError,
        SessionWarning as SessionWarning,
        SettingsError as SettingsError,
        SummarizationError as SummarizationError,
        TornWriteWarning as TornWriteWarning,
        UnsupportedVersionError as UnsupportedVersionError,
    )
    from sessiontree.host import (
        Host as Host,
    )
    from sessiontree.loading import (
        load_entries_from_file as load_entries_from_file,
        parse_session_entries as parse_session_entries,
    )
    from sessiontree.manager import (
        SessionManager as SessionManager,
    )
    from sessiontree.migrations import (
    )
    from sessiontree.paths import (
        get_default_session_dir as get_default_session_dir,
    )
    from sessiontree.report import (
        OpenReport as OpenReport,
        SkippedLine as SkippedLine,
    )
    from sessiontree.tree import (
        TreeNode as TreeNode,
    )

# Where each public name lives. A module is imported when one of its names is first asked for, so that
# importing the package costs a few milliseconds.
_HOMES: Final = {
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
    "sessiontree.host": (
        "Host",
    ),
    "sessiontree.loading": (
        "load_entries_from_file",
        "parse_session_entries",
    ),
    "sessiontree.manager": (
        "SessionManager",
    ),
    "sessiontree.migrations": (
    ),
    "sessiontree.paths": (
        "get_default_session_dir",
    ),
    "sessiontree.report": (
        "OpenReport",
        "SkippedLine",
    ),
    "sessiontree.tree": (
        "TreeNode",
    ),
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
