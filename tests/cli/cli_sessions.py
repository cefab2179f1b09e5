"""Sessions to try the command line on."""

from pathlib import Path

import sessiontree

SAMPLES = Path(sessiontree.__file__).parent / "samples"


def sample(name):
    """The bytes of a bundled sample."""
    return (SAMPLES / name).read_bytes()


def user(id, parent, text, second=1):
    """A user entry."""
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": f"2026-01-01T00:{second // 60 % 60:02}:{second % 60:02}.000Z",
        "message": {"role": "user", "content": text, "timestamp": 1767225600000 + 1000 * second},
    }
