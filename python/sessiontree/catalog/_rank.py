"""The order of what is found: BM25, with the length of a text told by its id.

The score of a text is the sum over the query's words of ``idf * f * 2.2 / (f + 0.3 + 0.9 * length)``, where
``f`` is how often the word occurs in it, ``idf`` how rare the word is among all texts, and ``length`` the
text's length, 1 for 1,000 characters. That is BM25 with its usual constants, 1.2 and 0.75.

FTS5 computes it, but looks each length up in a table, which takes longer than all the rest. So the index
keeps no lengths. The low bits of a text's id say instead what its words count for, in steps as coarse as a
byte: ``weight = 0.3 / (0.3 + 0.9 * length)``; multiplied by it, frequencies give the same score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

_BITS: Final = 8
_MOST: Final = (1 << _BITS) - 1
_USUAL: Final = 1000
"""The characters of a text of usual length."""
_NOTHING: Final = 1e-6
SCORE: Final = f"bm25(words, ? * (words.rowid & {_MOST}))"
"""What is less for a better text; its argument is `factor`."""


def ids(last: int, texts: Iterable[str]) -> Iterator[int]:
    """Ids of texts that come after the one with the id ``last``."""
    first = (last >> _BITS) + 1
    return (number << _BITS | _weight(len(text)) for number, text in enumerate(texts, first))


def _weight(characters: int) -> int:
    return max(1, round(_MOST / (1 + 3 * characters / _USUAL)))


def factor(connection: sqlite3.Connection) -> float:
    """By what the weights in ids are multiplied.

    Where it has no lengths, FTS5 takes each text for one of -1 words: it adds
    ``1.2 * (0.25 - 0.75 / average)`` to a frequency. In this proportion frequencies have to be less.
    """
    texts, words = _counts(connection)
    added = 0.3 - 0.9 * texts / words if words else 0.3
    # It adds nothing where texts have three words on average, exactly: then all that is found is alike.
    return added / 0.3 / _MOST if abs(added) > _NOTHING else 1 / _NOTHING


def indexed(connection: sqlite3.Connection) -> int:
    """How many texts the index has."""
    return _counts(connection)[0]


def _counts(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many texts and words the index has, from FTS5's own record."""
    row = connection.execute("SELECT block FROM words_data WHERE id = 1").fetchone()
    numbers = _varints(row[0]) if row is not None and row[0] else iter(())
    return next(numbers, 0), next(numbers, 0)


def _varints(block: bytes) -> Iterator[int]:
    """Integers as SQLite packs them: seven bits a byte, the first ones first; a ninth byte has eight."""
    number = length = 0
    for byte in block:
        length += 1
        if length == 9:
            yield number << 8 | byte
        elif byte & 0x80:
            number = number << 7 | byte & 0x7F
            continue
        else:
            yield number << 7 | byte
        number = length = 0
