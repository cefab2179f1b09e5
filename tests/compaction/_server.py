"""A local HTTP server that plays a model: each request gets the next of the planned answers."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Keeps what was asked and plays the next answer."""

    protocol_version = "HTTP/1.1"
    server: Model

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length))
        self.server.asked.append({"path": self.path, "headers": dict(self.headers), "body": body})
        try:
            self.server.next_answer()(self)
        except ConnectionError:
            self.server.hung_up.set()

    def log_message(self, *_args: Any) -> None:
        """Keep quiet."""

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data: Any, name: str | None = None) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        head = f"event: {name}\n" if name else ""
        self.wfile.write(f"{head}data: {text}\n\n".encode())
        self.wfile.flush()

    def wait_for_goodbye(self, seconds: float = 10.0) -> None:
        """Stay silent until the client hangs up."""
        self.connection.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            if self.connection.recv(1) == b"":
                self.server.hung_up.set()


class Model(ThreadingHTTPServer):
    """The server; ``asked`` holds the requests."""

    daemon_threads = True

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.asked: list[dict[str, Any]] = []
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def was_asked(self, times: int, seconds: float = 10.0) -> bool:
        """Wait until so many requests have come in."""
        deadline = time.monotonic() + seconds
        while len(self.asked) < times and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(self.asked) >= times

    def next_answer(self) -> Answer:
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


@contextlib.contextmanager
def serving(*answers: Answer) -> Iterator[Model]:
    """Run a model that gives these answers, the last one again and again."""
    model = Model(list(answers))
    thread = threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        model.shutdown()
        model.server_close()
        thread.join()


def status(code: int, body: Any, headers: dict[str, str] | None = None) -> Answer:
    """An answer that is an error."""

    def answer(handler: Handler) -> None:
        data = json.dumps(body).encode()
        handler.send_response(code)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def silent(handler: Handler) -> None:
    """Nothing at all, until the client hangs up."""
    handler.wait_for_goodbye()


def dropped(handler: Handler) -> None:
    """The connection is cut before a word is said."""
    handler.close_connection = True
    handler.connection.close()


# ---- OpenAI's chat completions


def _chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None, usage: Any = None
) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": choices, "usage": usage,
    }  # fmt: skip


OPENAI_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 20},
    "completion_tokens_details": {"reasoning_tokens": 12},
}


def openai(
    *texts: str,
    finish: str | None = "stop",
    tool: bool = False,
    pause: float = 0.0,
    hang: bool = False,
    error: dict[str, Any] | None = None,
    usage: bool = True,
) -> Answer:
    """A streamed answer in OpenAI's form; ``finish`` None breaks it off."""

    def answer(handler: Handler) -> None:
        handler.stream()
        handler.event(_chunk({"role": "assistant", "content": ""}))
        for text in texts:
            time.sleep(pause)
            handler.event(_chunk({"content": text}))
        if tool:
            call = {"index": 0, "id": "t1", "type": "function", "function": {"name": "x", "arguments": "{}"}}
            handler.event(_chunk({"tool_calls": [call]}))
        if error is not None:
            handler.event({"error": error})
            return
        if hang:
            handler.wait_for_goodbye()
            return
        if finish is None:
            return
        handler.event(_chunk({}, finish))
        if usage:
            handler.event(_chunk(None, usage=OPENAI_USAGE))
        handler.event("[DONE]")

    return answer


def openai_whole(text: str | None, finish: str = "stop") -> Answer:
    """An answer in OpenAI's form in one piece."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    fields = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
    return status(200, {**fields, "choices": [choice], "usage": OPENAI_USAGE})


# ---- Anthropic's messages


def anthropic(
    *texts: str,
    stop: str | None = "end_turn",
    tool: bool = False,
    pause: float = 0.0,
    hang: bool = False,
    error: dict[str, Any] | None = None,
) -> Answer:
    """A streamed answer in Anthropic's form; each text is a block; ``stop`` None breaks it off."""

    def answer(handler: Handler) -> None:
        handler.stream()
        usage = {"input_tokens": 100, "output_tokens": 1}
        cache = {"cache_read_input_tokens": 20, "cache_creation_input_tokens": 7}
        message = {
            "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {**usage, **cache},
        }  # fmt: skip
        handler.event({"type": "message_start", "message": message}, "message_start")
        for index, text in enumerate(texts):
            time.sleep(pause)
            start = {
                "type": "content_block_start",
                "index": index,
                "content_block": {"type": "text", "text": ""},
            }
            handler.event(start, "content_block_start")
            delta = {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "text_delta", "text": text},
            }
            handler.event(delta, "content_block_delta")
            handler.event({"type": "content_block_stop", "index": index}, "content_block_stop")
        if tool:
            block = {"type": "tool_use", "id": "t1", "name": "x", "input": {}}
            handler.event(
                {"type": "content_block_start", "index": 9, "content_block": block}, "content_block_start"
            )
        if error is not None:
            handler.event({"type": "error", "error": error}, "error")
            return
        if hang:
            handler.wait_for_goodbye()
            return
        if stop is None:
            return
        delta = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
        handler.event({**delta, "usage": {"output_tokens": 30}}, "message_delta")
        handler.event({"type": "message_stop"}, "message_stop")

    return answer
