"""Compaction: when a context is too long, what is summarised, and what is kept word for word.

The functions carry pi's names in snake_case and give pi's results: token estimates, cut points, the text
that is summarised, lists of files. On top of them stand `Compactor`, which keeps the context of a session
within the window of its model, and `navigate`, which goes to another place of the tree and takes a summary
of the branch that is left along. What asks a model does so through a `Summarizer`.
"""

from sessiontree.compaction.branches import (
    BranchPreparation,
    BranchSummaryResult,
    CollectedEntries,
    agenerate_branch_summary,
    collect_entries_for_branch_summary,
    generate_branch_summary,
    prepare_branch_entries,
)
from sessiontree.compaction.compactor import (
    BeforeCompaction,
    CompactionDecision,
    CompactionOutcome,
    Compactor,
    CompactorHooks,
    fitted_settings,
)
from sessiontree.compaction.convert import bash_execution_to_text, convert_to_llm, serialize_conversation
from sessiontree.compaction.cut import CutPoint, find_cut_point, find_turn_start_index
from sessiontree.compaction.files import (
    FileLists,
    FileOperations,
    compute_file_lists,
    create_file_ops,
    extract_file_ops_from_message,
    format_file_operations,
)
from sessiontree.compaction.navigation import (
    NavigationDecision,
    NavigationPlan,
    NavigationResult,
    anavigate,
    navigate,
)
from sessiontree.compaction.overflow import is_context_overflow, is_recoverable_length
from sessiontree.compaction.prepare import (
    DEFAULT_COMPACTION_SETTINGS,
    CompactionPreparation,
    prepare_compaction,
)
from sessiontree.compaction.prompts import (
    BRANCH_SUMMARY_PREFIX,
    BRANCH_SUMMARY_SUFFIX,
    COMPACTION_SUMMARY_PREFIX,
    COMPACTION_SUMMARY_SUFFIX,
    SUMMARIZATION_SYSTEM_PROMPT,
    SummaryPrompts,
)
from sessiontree.compaction.requests import (
    RetryCallbacks,
    RetryPolicy,
    Summarizer,
    SummaryOptions,
    SummaryRequest,
    SummaryResponse,
)
from sessiontree.compaction.serialize import serialize_session_branch
from sessiontree.compaction.summarize import (
    CompactionResult,
    GeneratedSummary,
    acompact,
    agenerate_summary,
    agenerate_summary_with_usage,
    compact,
    generate_summary,
    generate_summary_with_usage,
)
from sessiontree.compaction.tokens import (
    ContextUsageEstimate,
    TokenCounter,
    estimate_context_tokens,
    estimate_projected_context_tokens,
    estimate_tokens,
    estimate_tokens_by_script,
    should_compact,
)
from sessiontree.compaction.usage import (
    UsageCostItem,
    calculate_context_tokens,
    combine_usage,
    get_last_assistant_usage,
    get_usage_cost_breakdown,
)

__all__ = [
    "BRANCH_SUMMARY_PREFIX",
    "BRANCH_SUMMARY_SUFFIX",
    "COMPACTION_SUMMARY_PREFIX",
    "COMPACTION_SUMMARY_SUFFIX",
    "DEFAULT_COMPACTION_SETTINGS",
    "SUMMARIZATION_SYSTEM_PROMPT",
    "BeforeCompaction",
    "BranchPreparation",
    "BranchSummaryResult",
    "CollectedEntries",
    "CompactionDecision",
    "CompactionOutcome",
    "CompactionPreparation",
    "CompactionResult",
    "Compactor",
    "CompactorHooks",
    "ContextUsageEstimate",
    "CutPoint",
    "FileLists",
    "FileOperations",
    "GeneratedSummary",
    "NavigationDecision",
    "NavigationPlan",
    "NavigationResult",
    "RetryCallbacks",
    "RetryPolicy",
    "Summarizer",
    "SummaryOptions",
    "SummaryPrompts",
    "SummaryRequest",
    "SummaryResponse",
    "TokenCounter",
    "UsageCostItem",
    "acompact",
    "agenerate_branch_summary",
    "agenerate_summary",
    "agenerate_summary_with_usage",
    "anavigate",
    "bash_execution_to_text",
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
    "estimate_tokens_by_script",
    "extract_file_ops_from_message",
    "find_cut_point",
    "find_turn_start_index",
    "fitted_settings",
    "format_file_operations",
    "generate_branch_summary",
    "generate_summary",
    "generate_summary_with_usage",
    "get_last_assistant_usage",
    "get_usage_cost_breakdown",
    "is_context_overflow",
    "is_recoverable_length",
    "navigate",
    "prepare_branch_entries",
    "prepare_compaction",
    "serialize_conversation",
    "serialize_session_branch",
    "should_compact",
]
