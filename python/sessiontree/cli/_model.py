"""Which model writes summaries, and how it is asked."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from sessiontree import SettingsManager

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessiontree.cli._place import Place
    from sessiontree.compaction import Summarizer

_DEFAULT_WINDOW = 200_000


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a model."""
    options = (
        click.option("--model", metavar="PROVIDER/NAME", help="Who writes the summary; pi's default model if left out."),
        click.option("--base-url", metavar="URL", help="Of an endpoint that speaks OpenAI's chat completions (or Anthropic's messages)."),
        click.option(
            "--context-window", type=click.IntRange(1), default=_DEFAULT_WINDOW, show_default=True, metavar="TOKENS",
            help="How much the model can read.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def settings_of(place: Place) -> SettingsManager:
    """The settings of a working directory; those of a project do not count, nobody has said to trust it."""
    return SettingsManager.create(place.cwd, project_trusted=False)


def described(place: Place, given: str | None, context_window: int) -> dict[str, Any]:
    """Describe the model that an option, or pi's settings, name.

    Raises:
        click.UsageError: none is named.
    """
    settings = settings_of(place)
    provider, slash, name = (given or "").partition("/")
    if given is None:
        provider, name = settings.get_default_provider() or "", settings.get_default_model() or ""
    if not provider or not name or (given is not None and not slash):
        raise click.UsageError("--model must name a provider and a model, such as anthropic/claude-haiku-4-5")
    return {"provider": provider, "id": name, "contextWindow": context_window}


def summarizer(model: dict[str, Any], base_url: str | None) -> Summarizer:
    """Make what asks the model; the key comes from PROVIDER_API_KEY in the environment.

    Raises:
        click.UsageError: nobody has said where the provider is.
    """
    from sessiontree.compaction.clients import AnthropicSummarizer, OpenAISummarizer

    provider = model["provider"]
    key = os.environ.get(f"{provider.upper().replace('-', '_')}_API_KEY")
    if provider == "anthropic":
        return AnthropicSummarizer(base_url=base_url, api_key=key)
    if base_url is None and provider != "openai":
        raise click.UsageError(
            f"--base-url must say where {provider!r} is; known by name are openai and anthropic"
        )
    return OpenAISummarizer(base_url=base_url, api_key=key)


class Progress:
    """Show on a terminal how much the model has written."""

    def __init__(self) -> None:
        self._characters = 0
        self._wanted = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        """Take a piece of text."""
        self._characters += len(text)
        if self._wanted:
            sys.stderr.write(f"\rthe model has written {self._characters:,} characters")
            sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._wanted and self._characters:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def asked(work: Callable[[Progress], Any]) -> Any:
    """Do something that asks a model, with progress; a missing package is said in a line."""
    progress = Progress()
    try:
        return work(progress)
    except ImportError as error:
        raise click.ClickException(str(error)) from None
    finally:
        progress.end()
