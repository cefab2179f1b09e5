"""Blocking work for asyncio, on a thread of its own that ends with the task."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_CALLBACKS = ("on_progress", "on_error")


class _Stop:
    """Set when the task is cancelled, or when the caller's own event is."""

    def __init__(self, given: Any) -> None:
        self.own = threading.Event()
        self.given = given

    def is_set(self) -> bool:
        return self.own.is_set() or (self.given is not None and self.given.is_set())


async def on_own_thread(function: Callable[..., T], args: tuple[Any, ...], how: dict[str, Any]) -> T:
    """Call a function that takes ``cancel`` on a new thread, and its callbacks in the event loop.

    When the task is cancelled, the function is told to stop, and the thread has ended before the
    cancellation goes on.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stop = _Stop(how.get("cancel"))
    keywords = {**how, "cancel": stop}
    for name in _CALLBACKS:
        if keywords.get(name) is not None:
            keywords[name] = _in_loop(loop, keywords[name])

    def settle(set_result: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_result(value)

    def run() -> None:
        try:
            result = function(*args, **keywords)
        except BaseException as error:  # noqa: BLE001 - it is raised in the task
            loop.call_soon_threadsafe(settle, done.set_exception, error)
        else:
            loop.call_soon_threadsafe(settle, done.set_result, result)

    thread = threading.Thread(target=run, name="sessiontree-listing", daemon=True)
    thread.start()
    try:
        return await done
    finally:
        stop.own.set()
        thread.join()


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., object]) -> Callable[..., None]:
    def call(*args: object) -> None:
        loop.call_soon_threadsafe(callback, *args)

    return call
