"""Taking secrets out of what is shown or passed on: API keys, tokens, passwords.

What is called a password, a secret or a key is one, whatever it looks like. The other patterns are those of the detect-secrets project, which keeps them up to date; own patterns come
on top. Redaction works on the values of an entry (keys stay), before anything is drawn, so that all
formats show the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEEDS = "redaction needs the detect-secrets package: pip install 'sessiontree[export]'"

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
    ("Google API key", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("Bearer token", r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{20,}"),
    # A whole key, where the rule set only knows its first line.
    ("Private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
)


_KEPT = ("id", "parentId")
_KEPT_OF_IMAGES = (*_KEPT, "data")


# What is called a password is one, whatever it looks like: the name and the sign before it stay.
_NAMED = re.compile(
    r"""(?ix)
    ((?:[A-Za-z0-9_.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token))
    ["']? \s* (?: := | => | [:=] ) \s* ["']?)
    ([^\s"',;\\]{4,})
    """
)
_NAME = re.compile(r"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token)\Z")


class Redactor:
    r"""Replaces secrets in entries by ``[redacted: what]``.

    Args:
        patterns: further regular expressions, as text.

    Raises:
        ValueError: a pattern is no regular expression.
        ImportError: the rule set is not installed.

    Example:
        >>> Redactor([r"s3cret-\d+"]).text("the word is s3cret-42")  # doctest: +SKIP
        'the word is [redacted: own pattern]'
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        own = [("own pattern", _compiled(pattern)) for pattern in patterns]
        fixed = [(name, re.compile(pattern)) for name, pattern in _OWN]
        self._rules = [*own, *fixed, *_rule_set()]
        self.count = 0

    def __call__(self, entry: Any) -> Any:
        """Give a copy of an entry without secrets; keys and the entry's own ids stay."""
        return self._value(entry)

    def text(self, text: str) -> str:
        """Give a text without secrets."""
        for name, pattern in self._rules:
            text, count = pattern.subn(f"[redacted: {name}]", text)
            self.count += count
        text, count = _NAMED.subn(r"\1[redacted: named secret]", text)
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
                container[key] = copy = dict(value)
                kept = _KEPT_OF_IMAGES if copy.get("type") == "image" else _KEPT
                work.extend((copy, name) for name in copy if name not in kept)
            elif isinstance(value, list):
                container[key] = items = list(value)
                work.extend((items, at) for at in range(len(items)))
        return holder[0]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error


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
