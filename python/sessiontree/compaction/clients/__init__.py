"""Ready-made summarizers, one for each vendor's client.

======================  ===========================  ==================================================
name                    install                      speaks to
======================  ===========================  ==================================================
`OpenAISummarizer`      ``sessiontree[openai]``      OpenAI, and every endpoint that speaks its chat
                                                     completions: Ollama, vLLM, llama.cpp, OpenRouter
`AnthropicSummarizer`   ``sessiontree[anthropic]``   Anthropic's messages, and endpoints that speak them
======================  ===========================  ==================================================

The vendor's package is imported at the first request. Answers are streamed, so that a caller can show
progress and that cancelling ends the request at once. Nothing is repeated here: whoever asks decides that
by its `RetryPolicy`, and the answer says whether it makes sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessiontree.compaction.clients.anthropic import AnthropicSummarizer
    from sessiontree.compaction.clients.openai import OpenAISummarizer

__all__ = ["AnthropicSummarizer", "OpenAISummarizer"]


def __getattr__(name: str) -> object:
    """Import the module of a summarizer when it is asked for."""
    if name == "OpenAISummarizer":
        from sessiontree.compaction.clients.openai import OpenAISummarizer

        return OpenAISummarizer
    if name == "AnthropicSummarizer":
        from sessiontree.compaction.clients.anthropic import AnthropicSummarizer

        return AnthropicSummarizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
