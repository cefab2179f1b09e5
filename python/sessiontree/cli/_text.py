"""Text of sessions as a terminal may see it: nothing that moves the cursor, rings or reverses."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

# C0 and C1 controls, DEL, marks that reorder text, line separators, lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BLANKS = re.compile(r"[\t\n\r\x0b\x0c ]+")
# A preview never looks further into a text than this, whatever its length.
_LOOK = 2000


def escape(character: str) -> str:
    """Write a character as Python would in a string."""
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def safe(text: str, *, keep: str = "\n\t") -> str:
    r"""Show characters that would act on a terminal as escapes.

    Args:
        text: any text.
        keep: control characters that stay.

    Example:
        >>> safe("\x1b[2Jgone")
        '\\x1b[2Jgone'
    """
    return _UNSAFE.sub(lambda m: m[0] if m[0] in keep else escape(m[0]), text)


def one_line(text: str, width: int) -> str:
    r"""Put the beginning of a text into one line of at most ``width`` cells, with an ellipsis if cut.

    Example:
        >>> one_line("first\n  second", 9)
        'first se…'
    """
    start = text[:_LOOK].lstrip() or text[: 10 * _LOOK].lstrip()[:_LOOK]
    line = safe(_BLANKS.sub(" ", start), keep="").rstrip()
    cut = len(start) == _LOOK or cell_len(line) > width
    return fit(line, width) if cut else line


def fit(line: str, width: int) -> str:
    """Cut a line to ``width`` cells, wide characters counted as two; the last cell is an ellipsis."""
    if width < 1:
        return ""
    return f"{set_cell_size(line, min(width, cell_len(line) + 1) - 1).rstrip()}…"


def pad(line: str, width: int) -> str:
    """Fill a line up to ``width`` cells."""
    return line + " " * (width - cell_len(line))


def count(number: float, noun: str, plural: str | None = None) -> str:
    """Give a number with its noun.

    Example:
        >>> count(1, "entry", "entries"), count(1200, "entry", "entries")
        ('1 entry', '1,200 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size_text(size: float) -> str:
    """Give a number of bytes in the unit that fits.

    Example:
        >>> size_text(999), size_text(53_000), size_text(1_500_000_000)
        ('999 B', '53 kB', '1.5 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.1f} {unit}" if unit != "B" and size < 10 else f"{size:.0f} {unit}"
