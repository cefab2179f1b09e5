"""Our own prompts and prefixes as the tokens that stand for pi's in the recorded results.

Wording is not part of the behaviour that is compared; where it stands is.
"""

import importlib

# token (between U+27E6 and U+27E7) -> constant of sessiontree.compaction.prompts
CONSTANTS = {
    "INITIAL_SUMMARY_PROMPT": "INITIAL_SUMMARY_PROMPT",
    "UPDATE_SUMMARY_PROMPT": "UPDATE_SUMMARY_PROMPT",
    "TURN_PREFIX_PROMPT": "TURN_PREFIX_PROMPT",
    "SUMMARY_SYSTEM_PROMPT": "SUMMARIZATION_SYSTEM_PROMPT",
    "BRANCH_SUMMARY_PREAMBLE": "BRANCH_SUMMARY_PREAMBLE",
    "BRANCH_SUMMARY_PROMPT": "BRANCH_SUMMARY_PROMPT",
    "COMPACTION_SUMMARY_PREFIX": "COMPACTION_SUMMARY_PREFIX",
    "BRANCH_SUMMARY_PREFIX": "BRANCH_SUMMARY_PREFIX",
}


def own_wording():
    """``[[text, token], ...]``, longest text first."""
    try:
        prompts = importlib.import_module("sessiontree.compaction.prompts")
    except ImportError:
        return []
    found = [[getattr(prompts, name, ""), f"\u27e6{token}\u27e7"] for token, name in CONSTANTS.items()]
    return sorted((pair for pair in found if pair[0]), key=lambda pair: -len(pair[0]))
