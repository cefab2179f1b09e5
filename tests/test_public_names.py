"""What ``sessiontree`` exports: a name that comes or goes must be meant."""

import importlib

import sessiontree

EXPORTED = set(
    """
    BRANCH_SUMMARY_PREFIX BRANCH_SUMMARY_SUFFIX BrokenTreeWarning COMPACTION_SUMMARY_PREFIX
    COMPACTION_SUMMARY_SUFFIX CURRENT_SESSION_VERSION CompactionPreparation CompactionResult
    Compactor ConcurrentWriterWarning CorruptSessionError DEFAULT_COMPACTION_SETTINGS
    EntryNotFoundError Host InvalidJSONError InvalidSessionError InvalidSessionIdError OpenReport
    ProjectedEntry ReadOnlySessionError RetryCallbacks RetryPolicy SETTINGS_DEFAULTS SUMMARIZATION_SYSTEM_PROMPT
    SessionClosedError SessionConflictError SessionContext SessionFileLostError SessionInfo
    SessionManager SessionProjection SessionReplacedWarning SessionTreeError SessionWarning
    SettingsError SettingsManager SkippedLine SummarizationError Summarizer SummaryRequest
    SummaryResponse TornWriteWarning TreeNode UNSET UnsupportedVersionError assert_valid_session_id
    build_context_entries build_session_context build_session_projection calculate_context_tokens
    collect_entries_for_branch_summary combine_usage compact compute_file_lists convert_to_llm
    create_file_ops estimate_context_tokens estimate_projected_context_tokens estimate_tokens
    extract_file_ops_from_message find_cut_point find_most_recent_session find_turn_start_index
    format_file_operations generate_branch_summary generate_summary generate_summary_with_usage
    get_default_session_dir get_last_assistant_usage get_latest_compaction_entry
    get_usage_cost_breakdown iter_sessions load_entries_from_file migrate_session_entries navigate
    parse_session_entries prepare_branch_entries prepare_compaction project_context_entry
    serialize_conversation serialize_session_branch session_entry_to_context_messages should_compact
    """.split()  # noqa: SIM905 -- one name a line would be five screens
)


def test_nothing_else_is_exported():
    """The exported names are exactly these."""
    assert set(sessiontree.__all__) == EXPORTED


def test_every_name_is_there():
    """Each exported name can be had, by attribute and by import."""
    for name in sessiontree.__all__:
        assert getattr(sessiontree, name) is not None
    namespace = {}
    exec("from sessiontree import *", namespace)
    assert set(namespace) >= EXPORTED


def test_names_are_declared_where_they_live():
    """A name that the package hands on is the one of the module that defines it."""
    for home, names in sessiontree._HOMES.items():
        module = importlib.import_module(home)
        for name in names:
            assert getattr(sessiontree, name) is getattr(module, name)
