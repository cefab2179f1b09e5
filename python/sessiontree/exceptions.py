"""Every error and warning that sessiontree raises by itself.

::

    SessionTreeError
    ├── InvalidSessionError (ValueError)      not a session file: path, line, byte, what to do
    ├── InvalidSessionIdError (ValueError)    a session id that cannot be part of a file name
    ├── InvalidJSONError (ValueError)         a text that JSON.parse refuses: reason and position
    ├── EntryNotFoundError (LookupError)      no entry has this id
    ├── CorruptSessionError                   the tree cannot be walked (a cycle)
    ├── SessionConflictError                  strict=True and another writer was there
    ├── SessionFileLostError                  the file is gone or was cut while it was open
    ├── UnsupportedVersionError               written by a newer format: readable, not writable
    ├── ReadOnlySessionError                  a write to a session opened with read_only=True
    ├── SessionClosedError                    used after close()
    ├── ArchiveError                          a branch that cannot be taken out of a session, or put back
    ├── SettingsError                         a settings file or value that cannot be used
    └── SummarizationError                    a model's answer that must not become a summary
        └── SummarizationAbortedError         the caller cancelled it

    SessionWarning (UserWarning)
    ├── ConcurrentWriterWarning               entries of another writer were taken in
    ├── SessionReplacedWarning                the file shrank or was replaced: scanned again
    ├── TornWriteWarning                      a torn line of another writer was sealed
    └── BrokenTreeWarning                     a context ends early: cycle, or a kept entry that is missing

Trouble with files themselves stays ``OSError`` with ``errno`` and ``filename``; a listing that was cancelled
raises ``concurrent.futures.CancelledError``, one that is awaited ``asyncio.CancelledError``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN_IDS = 10


class SessionTreeError(Exception):
    """Base of all errors of this library."""


class InvalidSessionError(SessionTreeError, ValueError):
    """The file is not a session: no line of it is a session header before anything else."""


class InvalidSessionIdError(SessionTreeError, ValueError):
    """A session id must match ``[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?``."""


class InvalidJSONError(SessionTreeError, ValueError):
    """A text that JavaScript's ``JSON.parse`` refuses.

    Attributes:
        reason: what was found, or was missing.
        position: where, counted from 0 in ``unit``.
        unit: ``"byte"`` where bytes were read, ``"character"`` where a string was.
    """

    def __init__(self, reason: str, position: int, unit: str = "character") -> None:
        super().__init__(reason, position, unit)
        self.reason = reason
        self.position = position
        self.unit = unit

    def __str__(self) -> str:
        return f"invalid JSON: {self.reason} at {self.unit} {self.position}"


class EntryNotFoundError(SessionTreeError, LookupError):
    """No entry of the session has the given id."""


class CorruptSessionError(SessionTreeError):
    """The parents of some entries form a cycle, so there is no path to the root.

    Attributes:
        ids: of these entries, at most the first 100, as they stand in the file (JSON).
        path: the session's file, None if it is in memory.
    """

    ids: Sequence[str] = ()
    path: str | None = None

    def __str__(self) -> str:
        shown = ", ".join(self.ids[:_SHOWN_IDS]) + (", ..." if len(self.ids) > _SHOWN_IDS else "")
        where = f" ({self.path}); sessiontree doctor --fix mends it" if self.path else ""
        return super().__str__() + (f": {shown}" if shown else "") + where


class SessionConflictError(SessionTreeError):
    """``strict=True``, and another writer has changed the file; nothing was written."""


class SessionFileLostError(SessionTreeError):
    """The file vanished, shrank or changed under an open session and could not be restored."""


class UnsupportedVersionError(SessionTreeError):
    """The header's version is newer than this library writes; reading works, writing does not."""


class ReadOnlySessionError(SessionTreeError):
    """The session was opened with ``read_only=True``."""


class SessionClosedError(SessionTreeError):
    """The session was closed."""


class ArchiveError(SessionTreeError):
    """A branch cannot be taken out of its session or put back; nothing has changed."""


class SettingsError(SessionTreeError):
    """A settings file or one of its values cannot be used.

    Attributes:
        path: the file, None if the settings are in memory.
        key: the setting, such as ``compaction.reserveTokens``; None if the file as a whole is unusable.
        value: what was found there.
    """

    def __init__(
        self, message: str, *, path: str | None = None, key: str | None = None, value: object = None
    ) -> None:
        super().__init__(message)
        self.path = path
        self.key = key
        self.value = value


class SummarizationError(SessionTreeError):
    """The model gave no usable summary.

    Attributes:
        kind: what was to be summarised: ``history``, ``turn_prefix`` or ``branch``.
        reason: ``error`` (the provider failed), ``length`` (cut off by the output limit), ``tool_call``,
            ``empty``, ``aborted``, ``timeout``.
        detail: the provider's own words, None if it gave none.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        reason: str | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason
        self.detail = detail


class SummarizationAbortedError(SummarizationError):
    """The summary was cancelled before it was complete."""


class SessionWarning(UserWarning):
    """Base of all warnings of this library; each kind is given once per manager."""


class ConcurrentWriterWarning(SessionWarning):
    """Another process appended to the session; its entries were taken in first."""


class SessionReplacedWarning(SessionWarning):
    """The file shrank or was replaced; it was scanned again."""


class TornWriteWarning(SessionWarning):
    """A torn line of another writer was closed with a newline, so that nothing is glued to it."""


class BrokenTreeWarning(SessionWarning):
    """A context ends early: its path runs into a cycle, or the first kept entry is missing."""
