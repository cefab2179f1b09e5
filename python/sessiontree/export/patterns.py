"""Regular expressions of a user, which may take for ever on some text: each has a limit of time.

Python's own `re` cannot stop a match. The `regex` module can, and understands what `re` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEEDS: Final = "own patterns need the regex package: pip install 'sessiontree[export]'"

SECONDS: Final = 10.0
"""So long may one pattern take for one text."""


class Patterns:
    """Replaces what patterns match.

    Args:
        patterns: regular expressions, as text.
        by: what is put in the place of each match; it has no backslash.

    Raises:
        ValueError: a pattern is no regular expression, or matches the empty text.
        ImportError: there are patterns, and the regex package is not installed.
    """

    def __init__(self, patterns: Iterable[str], by: str) -> None:
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._by = by

    def subn(self, text: str) -> tuple[str, int]:
        """Give a text with all matches of all patterns replaced, one pattern after the other; how many.

        Raises:
            ValueError: a pattern takes longer than `SECONDS`.
        """
        total = 0
        for pattern in self._patterns:
            try:
                text, count = pattern.subn(self._by, text, timeout=SECONDS)
            except TimeoutError:
                raise ValueError(
                    f"the pattern {pattern.pattern!r} takes longer than {SECONDS:g} seconds for a text of "
                    f"{len(text):,} characters; one without nested repetitions, as in (a+)+, is faster"
                ) from None
            total += count
        return text, total


def _compiled(pattern: str) -> Any:
    try:
        import regex
    except ModuleNotFoundError as error:
        raise ImportError(_NEEDS) from error

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    if compiled.fullmatch(""):
        raise ValueError(f"the pattern {pattern!r} matches nothing at all, and so everywhere")
    return compiled
