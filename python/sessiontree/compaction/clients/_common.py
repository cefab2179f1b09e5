"""What all clients need: the package, the key, errors as answers, usage with its cost."""

from __future__ import annotations

import importlib
import os
import time
from typing import TYPE_CHECKING, Any, Final

from sessiontree.compaction.requests import SummaryResponse
from sessiontree.compaction.usage import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessiontree.compaction.requests import SummaryRequest

_RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429})
_TRANSPORTS: Final = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "anyio", "ssl"})
# What reading an answer of another form comes to: the packages build their objects without looking.
_NO_ANSWER: Final = (ValueError, TypeError, AttributeError, LookupError)
BROKEN_STREAM: Final = "the stream ended before the answer was complete"


def package(name: str) -> Any:
    """A vendor's package.

    Raises:
        ImportError: it is not installed; says how to get it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        text = (
            f"this summarizer needs the package {name!r}; install it with: pip install 'sessiontree[{name}]'"
        )
        raise ImportError(text, name=name) from error


def api_key(request: SummaryRequest, given: str | None, variable: str) -> str | None:
    """The key of the request, of the summarizer, or of the environment, in this order."""
    env: Mapping[str, str] = request.env or {}
    return request.api_key or given or env.get(variable) or os.environ.get(variable)


class ListenerError(Exception):
    """Whoever listens to the text has failed; the cause is the error itself, and no fault of the answer."""


def tell(request: SummaryRequest, text: str) -> None:
    """Hand on a piece of the answer.

    Raises:
        ListenerError: the listener failed.
    """
    if request.on_text is None:
        return
    try:
        request.on_text(text)
    except Exception as error:
        raise ListenerError from error


def sendable(text: str) -> str:
    """The text without halves of characters, which no request can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def refused(message: str) -> SummaryResponse:
    """An answer that says that asking makes no sense."""
    return SummaryResponse("", stop_reason="error", error_message=message, retryable=False)


def failure(error: Exception, vendor: Any, base: type[Exception]) -> SummaryResponse:
    """An error of a vendor's package, of the transport below it, or of reading an answer, as an answer.

    Args:
        error: what was raised.
        vendor: the package.
        base: what all errors of the package derive from.

    Raises:
        Exception: the error itself, if it is none of these: then it is a fault in a program.
    """
    if isinstance(error, ListenerError):
        raise error.__cause__ or error
    message = str(error) or type(error).__name__
    if isinstance(error, vendor.APIStatusError):
        return SummaryResponse(
            "",
            stop_reason="error",
            error_message=message,
            retryable=_passes(error.status_code),
            retry_after=_retry_after(error.response.headers),
        )
    if isinstance(error, vendor.APIConnectionError) or _is_transport(error):
        return SummaryResponse("", stop_reason="error", error_message=message, retryable=True)
    if isinstance(error, base):
        # An error in the middle of a stream has no status; its text has to tell.
        return SummaryResponse("", stop_reason="error", error_message=message)
    if isinstance(error, _NO_ANSWER):
        message = f"what came back is no answer of this protocol: {message}"
        return SummaryResponse("", stop_reason="error", error_message=message, retryable=True)
    raise error


def _passes(status: int) -> bool | None:
    """Is an error with this status gone in a moment? None lets its text decide.

    A quota that is used up has the status of a short throttle, and an error in the middle of a stream that
    of the stream's beginning.
    """
    if status < 400 or status in _RETRYABLE_STATUS:
        return None
    return status >= 500


def _is_transport(error: Exception) -> bool:
    """Did the connection fail while the answer was coming in? The packages let such errors through."""
    return type(error).__module__.partition(".")[0] in _TRANSPORTS or isinstance(error, OSError)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or a date)."""
    milliseconds = _float(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told = headers.get("retry-after")
    seconds = _float(told)
    if seconds is not None or told is None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except ValueError:
        return None


def _float(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None


def usage_of(
    model: Mapping[str, Any], *, fresh: Any, output: Any, cache_read: Any, cache_write: Any, reasoning: Any
) -> dict[str, Any]:
    """Usage as session files hold it; the cost follows from the model's prices per million tokens."""
    counts = {
        "input": max(0, number_of(fresh)),
        "output": number_of(output),
        "cacheRead": number_of(cache_read),
        "cacheWrite": number_of(cache_write),
    }
    prices = model.get("cost") or {}
    cost = {name: number_of(prices.get(name)) * count / 1_000_000 for name, count in counts.items()}
    usage: dict[str, Any] = dict(counts)
    if number_of(reasoning):
        usage["reasoning"] = number_of(reasoning)
    usage["totalTokens"] = sum(counts.values())
    usage["cost"] = {**cost, "total": sum(cost.values())}
    return usage
