"""Text of sessions as a terminal may see it: nothing that moves the cursor, rings or reverses."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

# C0 and C1 controls, DEL, marks that reorder text, line separators, lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Letters of the West, Greek and Cyrillic ones, signs and drawings: each has one cell.
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u205e\u2500-\u25fc]*")
_BLANKS = re.compile(r"[\t\n\r\x0b\x0c ]+")
# What only `str.split` takes for blanks.
_SEPARATORS = re.compile("[\x1c-\x1f]")
# A preview never looks further into a text than this, whatever its length: blanks at its beginning, blanks in
# between, and characters without a width of their own take some.
_LOOK = 400
_LEADING = 20_000


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
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(lambda m: m[0] if m[0] in keep else escape(m[0]), text)


def one_line(text: str, width: int) -> str:
    r"""Put the beginning of a text into one line of at most ``width`` cells, with an ellipsis if cut.

    Example:
        >>> one_line("first\n  second", 9)
        'first se…'
    """
    if len(text) <= width and text.isascii() and text.isprintable() and "  " not in text:
        # Ids, names, kinds: most of what is shown.
        return text.strip(" ")
    look = _LOOK + 4 * max(0, width)
    start = text[:look].lstrip() or text[:_LEADING].lstrip()[:look]
    line = safe(_words(start), keep="").rstrip()
    # No character is of more than two cells: most lines need not be measured.
    cut = len(text) > look or (2 * len(line) > width and cell_len(line) > width)
    return fit(line, width) if cut else line


def _words(text: str) -> str:
    """Put one blank between words; other writing has blanks of its own that stay."""
    if text.isascii() and not _SEPARATORS.search(text):
        return " ".join(text.split())
    return _BLANKS.sub(" ", text)


def fit(line: str, width: int) -> str:
    """Cut a line to ``width`` cells, wide characters counted as two; the last cell is an ellipsis."""
    if width < 1:
        return ""
    if _NARROW.fullmatch(line):
        return f"{line[: width - 1].rstrip()}…"
    # No character is of more than two cells and none that counts of less than a quarter; most have one at least.
    line = line[: width if cell_len(line[:width]) >= width else 4 * width]
    return f"{_rich_cells().set_cell_size(line, min(width, cell_len(line) + 1) - 1).rstrip()}…"


def cell_len(line: str) -> int:
    """Count the cells of a terminal that a line takes; wide characters take two."""
    if _NARROW.fullmatch(line):
        return len(line)
    # Measuring other writing takes tables that take time to load.
    cells: int = _rich_cells().cell_len(line)
    return cells


def _rich_cells() -> ModuleType:
    try:
        return import_module("rich.cells")
    except ModuleNotFoundError:
        raise ImportError(
            "the command line needs 'rich' for such writing: pip install 'sessiontree[cli]'"
        ) from None


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
