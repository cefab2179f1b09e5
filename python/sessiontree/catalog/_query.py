r"""From what somebody types to what SQLite is asked, and from a text to the words around a hit.

A query is words separated by blanks, all of which must occur; ``"two words"`` is a phrase, ``begin*`` a
prefix, ``-word`` must not occur, ``a OR b`` is one of both. Words of the index are runs of letters and
digits; so ``foo_bar.py`` is the phrase of its three parts. Where writing has no blanks between words
(Chinese, Japanese, Thai, ...), and for signs such as ``->``, the texts themselves are looked through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from sessiontree.catalog import _texts

_TOKEN: Final = re.compile(r'(-(?=[\w"]))?(?:"([^"]*)"?|([^\s"]+))(\*?)')
# Scripts without blanks between words: Thai to Myanmar, Khmer, kana, ideographs, Hangul is written with.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_BEFORE, _AFTER = 60, 140
_SNIPPET: Final = 400
_LOOKED_AT: Final = 100
"""Hits in a text, of which the best place is chosen."""
_PHRASES: Final = 50
_APART: Final = r"[\x00-/:-@\[-`{-\x7f]"
"""What is between words in ASCII."""
START, END = "\x02", "\x03"

Marks = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Query:
    """What is asked.

    Attributes:
        match: FTS5's query, or "" if the index is of no use.
        wanted: texts that must occur besides, in lower case.
        unwanted: texts that must not occur, in lower case.
        pattern: a regular expression that must match.
        words: a pattern for each phrase of ``match``, for texts in lower case; none if there is a phrase in
            other letters than ASCII's.
    """

    match: str = ""
    wanted: list[str] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)
    pattern: re.Pattern[str] | None = None
    words: list[re.Pattern[str]] = field(default_factory=list)

    def fits(self, text: str) -> bool:
        """Whether a text has what the index cannot tell."""
        if self.pattern is not None:
            return self.pattern.search(text) is not None
        if not self.wanted and not self.unwanted:
            return True
        lower = text.lower()
        return all(w in lower for w in self.wanted) and not any(u in lower for u in self.unwanted)

    def excerpt(self, text: str) -> tuple[str, Marks] | None:
        """The words around the hits of the index, where most phrases are near each other.

        None if it takes the index to see where they are: beside other letters than ASCII's.
        """
        lower = text.lower()
        hits = self._places(lower) if len(lower) == len(text) else []
        if not hits:
            return None
        start, end, _ = hits[self._best(hits)]
        left, right = start - _BEFORE, min(end, start + _SNIPPET) + _AFTER
        return _cut(text, left, right, [hit[:2] for hit in hits if left <= hit[0] < right])

    def _places(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and number of the phrases in a text, in their order, the longest first."""
        hits = []
        most = _LOOKED_AT // (len(self.words) or 1)
        for number, pattern in enumerate(self.words):
            at = count = 0
            while count < most and (hit := pattern.search(text, at)):
                start, at = hit.span()
                # Here, since a pattern that is little but letters is made and found much faster.
                before, behind = text[start - 1 : start], text[at : at + 1]
                if before.isalnum() or not before.isascii() or not behind.isascii():
                    at = start + 1
                else:
                    hits.append((start, at, number))
                    count += 1
        return sorted(hits, key=lambda hit: (hit[0], -hit[1]))

    def _best(self, hits: list[tuple[int, int, int]]) -> int:
        """The first of the hits behind which most phrases are near."""
        best = most = 0
        for at in range(len(hits)):
            count = self._count_near(hits, at)
            if count > most:
                best, most = at, count
            if most == len(self.words):
                break
        return best

    def _count_near(self, hits: list[tuple[int, int, int]], at: int) -> int:
        """How many phrases there are in the words behind a hit."""
        until, numbers = hits[at][0] + _AFTER, set()
        for start, _, number in hits[at:]:
            if start >= until:
                break
            numbers.add(number)
        return len(numbers)

    def place(self, text: str) -> tuple[int, int]:
        """Where the first hit is, if the index was not asked."""
        if self.pattern is not None:
            found = self.pattern.search(text)
            return found.span() if found else (0, 0)
        for wanted in self.wanted:
            at = text.lower().find(wanted)
            if at >= 0:
                return at, min(at + len(wanted), len(text))
        return 0, 0


def compile_query(text: str, *, phrase: bool, prefix: bool, regex: bool) -> Query:
    """Read a query.

    Raises:
        ValueError: there is nothing to look for, or the regular expression is none.
    """
    text = _texts.clean(text)
    if regex:
        return Query(pattern=_pattern(text))
    if phrase:
        if _is_indexed(text):
            return _checked(Query(), text, [[_fts(text, prefix=prefix)]], [])
        return _checked(Query(wanted=[text.lower()] if text.strip() else []), text, [], [])
    return _of_words(text, prefix=prefix)


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern; without capital letters in it, case does not matter."""
    if not text:
        raise ValueError("nothing to search for: the regular expression is empty")
    flags = re.IGNORECASE if text == text.lower() else 0
    try:
        return re.compile(text, flags | re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {text!r}: {error}") from None


def _of_words(text: str, *, prefix: bool) -> Query:
    query = Query()
    groups: list[list[str]] = []
    excluded: list[str] = []
    found = list(_TOKEN.finditer(text))
    either = False
    for at, token in enumerate(found):
        minus, quoted, word, star = token.groups()
        if word == "OR" and not minus and not star:
            either = bool(groups) and at + 1 < len(found)
            continue
        if word is not None and word.endswith("*"):
            word, star = word.rstrip("*"), "*"
        term = quoted if word is None else word
        begins = bool(star) or (prefix and at + 1 == len(found))
        if not _is_indexed(term):
            if term.strip():
                (query.unwanted if minus else query.wanted).append(term.lower())
        elif minus:
            excluded.append(_fts(term, prefix=begins))
        elif either:
            groups[-1].append(_fts(term, prefix=begins))
        else:
            groups.append([_fts(term, prefix=begins)])
        either = False
    return _checked(query, text, groups, excluded)


def _checked(query: Query, text: str, groups: list[list[str]], excluded: list[str]) -> Query:
    if not groups and not query.wanted:
        raise ValueError(f"nothing to search for: {text!r} has no word that must occur")
    if groups:
        query.words = _words([phrase for group in groups for phrase in group])
    query.match = " AND ".join(f"({' OR '.join(group)})" for group in groups)
    if query.match and excluded:
        query.match = f"({query.match}) NOT ({' OR '.join(excluded)})"
    elif excluded:
        query.unwanted += [term.strip('" *').lower() for term in excluded]
    return query


def _words(phrases: list[str]) -> list[re.Pattern[str]]:
    """What finds phrases of FTS5; the index takes all but letters and digits for what is between words."""
    if len(phrases) > _PHRASES or not all(map(str.isascii, phrases)):
        return []
    return [
        re.compile(
            f"{_APART}+".join(re.findall("[a-z0-9]+", phrase.lower()))
            + ("[a-z0-9]*" if phrase[-1] == "*" else "")
            + "(?![a-z0-9])"
        )
        for phrase in phrases
    ]


def _is_indexed(term: str) -> bool:
    """Whether the index has words of a text, and all of them."""
    return any(map(str.isalnum, term)) and _UNSPACED.search(term) is None


def _fts(term: str, *, prefix: bool) -> str:
    quoted = term.replace('"', " ").replace("\0", " ")
    return f'"{quoted}"*' if prefix else f'"{quoted}"'


def around(text: str, start: int, end: int) -> tuple[str, Marks]:
    """Cut the surroundings of a hit out, on one line, and say where the hit is in them."""
    end = min(end, start + _SNIPPET)
    return _cut(text, start - _BEFORE, end + _AFTER, [(start, end)])


def _cut(text: str, left: int, right: int, spans: list[tuple[int, int]]) -> tuple[str, Marks]:
    left, right = max(0, left), min(len(text), right)
    pieces, at = ["…" if left else ""], left
    for start, end in spans:
        if start >= at:
            pieces += text[at:start], START, text[start : min(end, right)], END
            at = min(end, right)
    pieces += text[at:right], "…" if right < len(text) else ""
    return unmarked("".join(pieces))


def unmarked(snippet: str) -> tuple[str, Marks]:
    """Take the marks out of a snippet, put it on one line, cut it, and say where the marks were."""
    snippet = " ".join(snippet.split())
    first = snippet.find(START)
    if first > _BEFORE * 2:
        snippet = f"…{snippet[first - _BEFORE :]}"
    pieces: list[str] = []
    marks: list[tuple[int, int]] = []
    length = 0
    for at, piece in enumerate(snippet.replace(END, START).split(START)):
        kept = piece[: _SNIPPET - length]
        if at % 2 and kept:
            marks.append((length, length + len(kept)))
        pieces.append(kept)
        length += len(kept)
    return "".join(pieces), tuple(marks)
