"""What settings may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SAFE_INTEGER: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Check:
    """What a setting may be."""

    wanted: str
    types: tuple[type, ...]
    whole: bool = False

    def accepts(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))
        if int not in self.types or not 0 <= value <= MAX_SAFE_INTEGER:
            return False
        return not self.whole or value == int(value)


TOKENS: Final = Check(f"an integer from 0 to {MAX_SAFE_INTEGER}", (int,), whole=True)
_NUMBER: Final = Check(f"a number from 0 to {MAX_SAFE_INTEGER}", (int,))
_SWITCH: Final = Check("true or false", (bool,))
OBJECT: Final = Check("an object", (dict,))
_TEXT: Final = Check("a text", (str,))

CHECKS: Final[Mapping[str, Check]] = {
    "compaction.enabled": _SWITCH,
    "compaction.reserveTokens": TOKENS,
    "compaction.keepRecentTokens": TOKENS,
    "compaction.modelOverrides.*": OBJECT,
    "compaction.modelOverrides.*.reserveTokens": TOKENS,
    "compaction.modelOverrides.*.keepRecentTokens": TOKENS,
    "branchSummary.reserveTokens": TOKENS,
    "branchSummary.skipPrompt": _SWITCH,
    "retry.enabled": _SWITCH,
    "retry.maxRetries": TOKENS,
    "retry.baseDelayMs": _NUMBER,
    "retry.maxAgentDelayMs": _NUMBER,
    "retry.provider.maxRetryDelayMs": _NUMBER,
    "defaultProvider": _TEXT,
    "defaultModel": _TEXT,
    "sessionDir": _TEXT,
}
