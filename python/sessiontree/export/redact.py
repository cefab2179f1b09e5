"""Taking secrets out of what is shown or passed on: API keys, tokens, passwords.

What is called a password, a secret or a key is one, whatever it looks like. The other patterns are those
of the detect-secrets project, which keeps them up to date; own patterns come on top. Redaction works on
the texts of an entry, of its labels and of the session's header, before anything is drawn, so that all
formats show the same. What makes them a session stays, whatever a pattern matches: ids and what refers to
them, and the words of the format.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sessiontree.export.patterns import Patterns
from sessiontree.export.structure import KEYS, is_image, restore_structure

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEEDS = "redaction needs the detect-secrets package: pip install 'sessiontree[export]'"

_WINDOW, _OVERLAP = 12_000, 4_000
"""Characters that a rule looks at together, and how many of them it meets twice."""

_MOST_KEYS = 10_000
"""Of how many different keys of objects it is remembered what becomes of them."""

# Detectors whose patterns are about form alone; those about high entropy or key words would take
# ordinary text out as well.
_DETECTORS = (
    ("artifactory", "ArtifactoryDetector"),
    ("aws", "AWSKeyDetector"),
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("basic_auth", "BasicAuthDetector"),
    ("cloudant", "CloudantDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("github_token", "GitHubTokenDetector"),
    ("gitlab_token", "GitLabTokenDetector"),
    ("ibm_cloud_iam", "IbmCloudIamDetector"),
    ("jwt", "JwtTokenDetector"),
    ("mailchimp", "MailchimpDetector"),
    ("npm", "NpmDetector"),
    ("openai", "OpenAIDetector"),
    ("private_key", "PrivateKeyDetector"),
    ("pypi_token", "PypiTokenDetector"),
    ("sendgrid", "SendGridDetector"),
    ("slack", "SlackDetector"),
    ("square_oauth", "SquareOAuthDetector"),
    ("stripe", "StripeDetector"),
    ("telegram_token", "TelegramBotTokenDetector"),
    ("twilio", "TwilioKeyDetector"),
)

# Forms that the rule set does not have: the keys of the model providers themselves.
_OWN = (
    ("Model provider key", r"\bsk-(?:ant-|proj-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    # With its signature, which the rule set leaves.
    ("JSON Web Token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    ("Google API key", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("Bearer token", r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{20,}"),
    # A whole key, where the rule set only knows its first line.
    ("Private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
)


# What is called a password is one, whatever it looks like: the name and the sign before it stay.
_NAMES = r"""(?:password|passwd|passphrase|secret|api[_-]?key|private[_-]?key|secret[_-]?(?:access[_-]?)?key|
    (?:access|auth|refresh|id|bearer)token|[_-]token)"""
_NAMED = re.compile(
    rf"""(?ix)
    ({_NAMES} \\* ["']? \s* (?: := | => | [:=] ) \s* \\* ["']?)
    ([^\s"',;\\]{{4,}})
    """
)
_NAME = re.compile(rf"(?ix) (?: {_NAMES} | \A token ) \Z")
# As an argument of a program, its value stands after a blank.
_ARGUMENT = re.compile(rf"(?ix) (--(?:[a-z0-9-]*-)?(?:{_NAMES}|token) \s+ [\"']?) ([^\s\"'-][^\s\"']{{3,}})")


class Redactor:
    r"""Replaces secrets in entries by ``[redacted: what]``.

    Args:
        patterns: further regular expressions, as text. Each may take ten seconds for one text; then a
            ValueError names it.

    Raises:
        ValueError: a pattern is no regular expression, or matches the empty text.
        ImportError: the rule set is not installed.

    Example:
        >>> Redactor([r"s3cret-\d+"]).text("the word is s3cret-42")  # doctest: +SKIP
        'the word is [redacted: own pattern]'
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = Patterns(patterns, "[redacted: own pattern]")
        self._own = [(name, re.compile(pattern)) for name, pattern in _OWN]
        self._rules = _rule_set()
        self._keys: dict[str, str] = {}
        self.count = 0

    def __call__(self, entry: Any) -> Any:
        """Give a copy of an entry, or of a header, without secrets; ids, and what refers to them, stay."""
        copy = self._value(entry)
        if isinstance(entry, dict):
            restore_structure(copy, entry)
        return copy

    def text(self, text: str) -> str:
        """Give a text without secrets."""
        text, count = self._patterns.subn(text)
        self.count += count
        for name, pattern in self._own:
            text, count = pattern.subn(f"[redacted: {name}]", text)
            self.count += count
        for name, pattern in self._rules:
            text, count = _replace(pattern, f"[redacted: {name}]", text)
            self.count += count
        for pattern in (_NAMED, _ARGUMENT):
            text, count = pattern.subn(r"\1[redacted: named secret]", text)
            self.count += count
        return text

    def _named(self, key: Any, value: str) -> str:
        """Give a member's text without secrets; all of it is one where its key says so."""
        if isinstance(key, str) and value and _NAME.search(key):
            self.count += 1
            return "[redacted: named secret]"
        return self.text(value)

    def _value(self, root: Any) -> Any:
        """Copy containers level by level: nesting has no limit."""
        holder = [root]
        work: list[tuple[Any, Any]] = [(holder, 0)]
        while work:
            container, key = work.pop()
            value = container[key]
            if isinstance(value, str):
                container[key] = self._named(key, value)
            elif isinstance(value, dict):
                container[key] = copy = self._with_keys(value)
                kept = ("data",) if is_image(copy) else ()
                work.extend((copy, name) for name in copy if name not in kept)
            elif isinstance(value, list):
                container[key] = items = list(value)
                work.extend((items, at) for at in range(len(items)))
        return holder[0]

    def _with_keys(self, value: dict[str, Any]) -> dict[str, Any]:
        """Copy an object; a key that is a secret becomes another one."""
        copy: dict[str, Any] = {}
        for key, member in value.items():
            name = self._keys.get(key)
            if name is None:
                name = key if key in KEYS else self.text(key)
                if len(self._keys) < _MOST_KEYS:
                    self._keys[key] = name
            while name in copy:
                name += " (another)"
            copy[name] = member
        return copy


def _replace(pattern: re.Pattern[str], by: str, text: str) -> tuple[str, int]:
    """Replace all matches, and count them.

    Some rules take time in proportion to the square of a text that is made for it. So a long one is looked
    through in windows that overlap; a match that comes to the end of its window is taken up without one.
    """
    if len(text) <= _WINDOW:
        return pattern.subn(by, text)
    parts: list[str] = []
    done = count = 0
    for start in range(0, len(text), _WINDOW - _OVERLAP):
        stop = min(len(text), start + _WINDOW)
        following = start + _WINDOW - _OVERLAP if stop < len(text) else len(text)
        for found in pattern.finditer(text, max(start, done), stop):
            if found.start() >= following:
                break
            whole = pattern.match(text, found.start()) if found.end() == stop < len(text) else found
            if found.start() >= done and whole and whole.end() > whole.start():
                parts += [text[done : found.start()], by]
                done, count = whole.end(), count + 1
    return "".join([*parts, text[done:]]), count


def _rule_set() -> list[tuple[str, re.Pattern[str]]]:
    from importlib import import_module

    rules = []
    for module, name in _DETECTORS:
        try:
            detector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)
        except ModuleNotFoundError as error:
            raise ImportError(_NEEDS) from error
        rules += [(detector.secret_type, pattern) for pattern in detector.denylist]
    return rules
