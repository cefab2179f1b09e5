"""orjson, imported in one go: Ctrl-C in the midst of its start-up would end the process with a fault of memory."""

from __future__ import annotations

import signal

__all__ = ["orjson"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    import orjson


def _imported() -> ModuleType:
    """Import orjson; a Ctrl-C meanwhile is heard afterwards."""
    caught: list[tuple[Any, ...]] = []
    handler = signal.getsignal(signal.SIGINT)
    try:
        if callable(handler):
            signal.signal(signal.SIGINT, lambda *told: caught.append(told))
    except ValueError:
        # Not the main thread: it is not the one that a signal interrupts.
        handler = None
    try:
        import orjson
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    if caught and callable(handler):
        handler(*caught[0])
    return orjson


if not TYPE_CHECKING:
    orjson = _imported()
