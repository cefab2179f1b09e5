"""Run as a program: replaces matches of regular expressions, and ends when one takes too long.

It knows nothing of the package and imports only what it needs: it is started for an export with own patterns.
Arguments: seconds that a replacement may take, and the text to put in. Standard input has the number of
patterns, the patterns, and then requests: the number of a pattern and a text. The answer to each is the number
of matches, and the new text if there were any. Numbers have four bytes, texts eight for their length.
"""

from __future__ import annotations

import faulthandler
import os
import re
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

NUMBER = struct.Struct("<I")
LENGTH = struct.Struct("<Q")


def text_bytes(text: str) -> bytes:
    """Give a text as it is sent."""
    data = text.encode("utf-8", "surrogatepass")
    return LENGTH.pack(len(data)) + data


def read_text(file: IO[bytes]) -> str:
    """Read a text that was sent.

    Raises:
        EOFError: whoever sends has ended.
    """
    (length,) = LENGTH.unpack(_exactly(file, LENGTH.size))
    return _exactly(file, length).decode("utf-8", "surrogatepass")


def read_number(file: IO[bytes]) -> int:
    """Read a number; errors as for `read_text`."""
    number: int = NUMBER.unpack(_exactly(file, NUMBER.size))[0]
    return number


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError
    return data


def main(limit: float, by: str) -> None:
    """Answer requests until there are no more."""
    take, give = sys.stdin.buffer, sys.stdout.buffer
    patterns = [re.compile(read_text(take)) for _ in range(read_number(take))]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        while True:
            pattern, text = patterns[read_number(take)], read_text(take)
            # Its thread needs nothing of the interpreter, which no signal reaches within a match.
            faulthandler.dump_traceback_later(limit, exit=True, file=nowhere)
            text, count = pattern.subn(by, text)
            faulthandler.cancel_dump_traceback_later()
            give.write(NUMBER.pack(count) + (text_bytes(text) if count else b""))
            give.flush()


if __name__ == "__main__":
    try:
        main(float(sys.argv[1]), sys.argv[2])
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        os._exit(0)
