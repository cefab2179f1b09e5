"""The Python layer over arbitrary bytes: what a search has come upon, and what is made up on the spot."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .anything import check
from .sessions import entry, header, line

CORPUS = Path(__file__).parent / "corpus"

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KINDS = ["message", "compaction", "branch_summary", "label", "session_info", "context_edit", "custom"]
IDS = st.sampled_from(["e0", "e1", "e2", "00000001", "", None, 1, {}])
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "toolResult", "system", "x", 1, None]),
        "content": VALUES | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": VALUES})),
        "usage": VALUES,
        "timestamp": VALUES,
    },
)
ENTRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "id": IDS,
        "parentId": IDS,
        "timestamp": VALUES,
        "message": MESSAGES | VALUES,
        "targetId": IDS,
        "firstKeptEntryId": IDS,
        "summary": VALUES,
        "replacement": VALUES,
        "label": VALUES,
        "name": VALUES,
    },
)
LINES = st.one_of(
    ENTRIES.map(line),
    VALUES.map(line),
    st.binary(max_size=40),
    st.sampled_from([b"\n", line(header()), line(header(version=1)), line(entry("e0", "e1")), b'{"torn']),
)


@pytest.fixture(scope="module", autouse=True)
def cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SESSIONTREE_CACHE", "off")
        yield


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_what_was_found_holds(name, tmp_path):
    """Everything that a search kept is borne: only documented errors come out, nothing is lost."""
    check((CORPUS / name).read_bytes(), tmp_path)


@settings(deadline=None)
@given(parts=st.lists(LINES, max_size=8))
def test_made_up_lines_are_borne(parts, tmp_path_factory):
    """Lines of odd entries, values and bytes give documented errors at most, and lose no whole line."""
    check(b"".join(parts), tmp_path_factory.mktemp("made"))
