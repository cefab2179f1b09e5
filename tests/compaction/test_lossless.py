"""Whatever a session holds: nothing is lost between compactions, and no call is torn from its result."""

from hypothesis import given
from hypothesis import strategies as st
from sessiontree.compaction import Compactor, SummaryResponse
from sessiontree.manager import SessionManager

MODEL = {"provider": "p", "id": "m", "contextWindow": 2000, "maxTokens": 200}


class Writer:
    """Appends messages of random kinds to a session, each text unlike all others."""

    def __init__(self, session):
        self.session = session
        self.texts = []
        self.open_calls = []

    def text(self, size):
        self.texts.append(f"<{len(self.texts)}>")
        return self.texts[-1] + "x" * size

    def write(self, kind, size):
        session = self.session
        if kind == "user":
            session.append_message({"role": "user", "content": self.text(size), "timestamp": 1})
        elif kind == "custom":
            session.append_custom_message_entry("note", self.text(size), display=False)
        elif kind == "bash":
            session.append_message(
                {"role": "bashExecution", "command": self.text(0), "output": "x" * size, "timestamp": 1}
            )
        elif kind == "label":
            session.append_label_change(session.get_leaf_id() or session.append_custom_entry("x"), "here")
        elif kind == "result" and self.open_calls:
            self.result(self.open_calls.pop(0), size)
        elif kind in ("answer", "calls"):
            self.answer(size, 2 if kind == "calls" else 0)

    def answer(self, size, calls):
        self.open_calls = [f"c{len(self.texts)}-{number}" for number in range(calls)]
        blocks = [{"type": "toolCall", "id": id, "name": "x", "arguments": {}} for id in self.open_calls]
        content = [{"type": "text", "text": self.text(size)}, *blocks]
        self.session.append_message(
            {"role": "assistant", "content": content, "stopReason": "stop", "timestamp": 1}
        )

    def result(self, id, size):
        content = [{"type": "text", "text": self.text(size)}]
        self.session.append_message(
            {"role": "toolResult", "toolCallId": id, "toolName": "x", "content": content, "timestamp": 1}
        )


KINDS = st.sampled_from(["user", "answer", "answer", "calls", "result", "result", "custom", "bash", "label"])
STEPS = st.lists(st.tuples(KINDS, st.integers(0, 1200)) | st.just("compact"), max_size=40)


@given(STEPS, st.integers(0, 600))
def test_nothing_is_lost(steps, keep):
    """Each text is in the context or was given to the model, and calls and results stay together."""
    session = SessionManager.in_memory("/c")
    asked = []

    def model(request):
        asked.append(request.prompt)
        return SummaryResponse(f"SUMMARY {len(asked)}")

    compactor = Compactor(
        session,
        MODEL,
        model,
        settings={"enabled": True, "reserveTokens": 300, "keepRecentTokens": keep},
        max_input_tokens=None,
    )
    writer = Writer(session)
    for step in [*steps, "compact"]:
        if step != "compact":
            writer.write(*step)
            continue
        compactor.compact()
        check(session, asked, writer)


def check(session, asked, writer):
    messages = session.build_session_context().messages
    told = "".join(asked) + repr(messages)
    assert [text for text in writer.texts if text not in told] == []
    called = set()
    for message in messages:
        if message["role"] == "assistant":
            called.update(block["id"] for block in message["content"] if block["type"] == "toolCall")
        elif message["role"] == "toolResult":
            assert message["toolCallId"] in called
    answered = {message.get("toolCallId") for message in messages}
    assert set(writer.open_calls) <= called | answered
