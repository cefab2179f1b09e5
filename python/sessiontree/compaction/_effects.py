"""Steps that are written once and driven from plain code and from asyncio alike.

A procedure that asks a model, waits between attempts or calls hooks is a generator which yields what it
wants done (`Ask`, `Pause`, `Call`) and is sent the result. `run` does these things on the caller's thread,
`arun` in the caller's event loop. Both watch a cancel event and a deadline while they wait, so that a model
that never answers cannot hold up anybody: what cannot be interrupted runs on a daemon thread and is left
to itself.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sessiontree.exceptions import SummarizationAbortedError, SummarizationError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_POLL_SECONDS: Final = 0.05
_GRACE_SECONDS: Final = 5.0
"""How long a cancelled task may take to clean up before it is left to itself."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Call a function that may take long or never come back; its result is sent."""

    function: Callable[[Any], Any]
    argument: Any


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """Call a hook; its result is sent."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


Effect = Ask | Pause | Call
Steps = Generator[Effect, Any, T]


class Limits:
    """How long, and until what, may be waited.

    Args:
        cancel: stops everything when it is set.
        time_limit: seconds from now, for all steps together.
    """

    def __init__(self, cancel: threading.Event | None, time_limit: float | None) -> None:
        self._cancel = cancel
        self._time_limit = time_limit
        self._deadline = None if time_limit is None else time.monotonic() + time_limit

    @property
    def exist(self) -> bool:
        """Is there anything to watch?"""
        return self._cancel is not None or self._deadline is not None

    def check(self) -> None:
        """Raise if the time is over or the caller has cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise SummarizationAbortedError("the summary was cancelled", reason="aborted")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            message = f"no summary within the time limit of {self._time_limit:g} s"
            raise SummarizationError(message, reason="timeout")

    def slice(self, seconds: float | None = None) -> float | None:
        """How long to wait before the next check, at most ``seconds``; None is for ever."""
        spans = [span for span in (seconds, _POLL_SECONDS if self._cancel else None) if span is not None]
        if self._deadline is not None:
            spans.append(max(0.0, self._deadline - time.monotonic()))
        return min(spans, default=None)


def run(steps: Steps[T], limits: Limits) -> T:
    """Drive steps on this thread."""
    perform: Callable[[], Any] = lambda: None  # noqa: E731 - the first send of a generator is None
    try:
        while True:
            try:
                value = perform()
            except BaseException as error:  # noqa: BLE001 - the steps decide what an error means
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
            perform = _performer(effect, limits)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()


def _performer(effect: Effect, limits: Limits) -> Callable[[], Any]:
    match effect:
        case Ask():
            return lambda: _ask(effect, limits)
        case Pause():
            return lambda: _pause(effect.seconds, limits)
        case Call():
            return lambda: _awaited(effect.function(*effect.arguments))


def _ask(effect: Ask, limits: Limits) -> Any:
    limits.check()
    if not limits.exist:
        return _awaited(effect.function(effect.argument))
    return _watched(_Worker(lambda: effect.function(effect.argument)), limits)


def _awaited(value: Any) -> Any:
    """The value, waited for if it is awaitable: in an event loop of its own, as ours may be busy."""
    return _watched(_Worker(lambda: value), Limits(None, None)) if inspect.isawaitable(value) else value


def _watched(worker: _Worker, limits: Limits) -> Any:
    worker.start()
    try:
        while not worker.done.wait(limits.slice()):
            limits.check()
    except BaseException:
        worker.stop()
        raise
    return worker.result()


def _pause(seconds: float, limits: Limits) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        limits.check()
        time.sleep(limits.slice(left) or 0.0)
    limits.check()


class _Worker:
    """A call on a daemon thread; what it gives is awaited there."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self._function = function
        self._context = contextvars.copy_context()
        self._value: Any = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._cancel_task: Callable[[], object] | None = None
        self._thread = threading.Thread(
            target=self._context.run, args=(self._work,), daemon=True, name="sessiontree-summary"
        )

    def start(self) -> None:
        self._thread.start()

    def result(self) -> Any:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value

    def stop(self) -> None:
        """Cancel what can be cancelled, and wait for it; a call that cannot is left behind."""
        with self._lock:
            self._stopped = True
            cancel = self._cancel_task
        if cancel is not None:
            cancel()
            self._thread.join(_GRACE_SECONDS)

    def _work(self) -> None:
        try:
            value = self._function()
            self._value = self._await(value) if inspect.isawaitable(value) else value
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self.done.set()

    def _await(self, value: Awaitable[Any]) -> Any:
        import asyncio

        return asyncio.run(self._as_task(value))

    async def _as_task(self, value: Awaitable[Any]) -> Any:
        import asyncio

        task = asyncio.ensure_future(value)
        loop = asyncio.get_running_loop()
        with self._lock:
            self._cancel_task = lambda: loop.call_soon_threadsafe(task.cancel)
            stopped = self._stopped
        if stopped:
            task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._cancel_task = None


async def arun(steps: Steps[T], limits: Limits) -> T:
    """Drive steps in the running event loop; cancelling the task cancels them."""
    effect: Effect | None = None
    try:
        while True:
            try:
                value = None if effect is None else await _aperform(effect, limits)
            except BaseException as error:  # noqa: BLE001 - the steps decide what an error means
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()


async def _aperform(effect: Effect, limits: Limits) -> Any:
    match effect:
        case Ask():
            limits.check()
            return await _awatched(_called(effect), limits)
        case Pause():
            return await _apause(effect.seconds, limits)
        case Call():
            value = effect.function(*effect.arguments)
            return await value if inspect.isawaitable(value) else value


async def _called(effect: Ask) -> Any:
    """Call in the loop what is async, and anything else on a thread so that the loop stays free."""
    function = effect.function
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return await function(effect.argument)
    value = await _on_thread(lambda: function(effect.argument))
    return await value if inspect.isawaitable(value) else value


async def _on_thread(function: Callable[[], T]) -> T:
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", value))

    def work() -> None:
        value, error = None, None
        try:
            value = function()
        except BaseException as raised:  # noqa: BLE001 - handed to the loop that waits
            error = raised
        # If the loop has ended, nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name="sessiontree-summary").start()
    return await future


async def _awatched(work: Coroutine[Any, Any, T], limits: Limits) -> T:
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=limits.slice())
            if not task.done():
                limits.check()
    except BaseException:
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE_SECONDS)
        raise
    return task.result()


async def _apause(seconds: float, limits: Limits) -> None:
    import asyncio

    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        limits.check()
        await asyncio.sleep(limits.slice(left) or 0.0)
    limits.check()
