"""The part of SessionManager that finds and lists sessions: pi's names for `sessiontree.listing`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, Unpack

    from sessiontree.listing import ListingOptions, OnProgress, SessionInfo

    # Inside the class `list` is pi's method.
    Infos: TypeAlias = list[SessionInfo]


class SessionFinder:
    """Class methods that need no open session."""

    @staticmethod
    def find_by_id(cwd: str, id: str, session_dir: str | None = None) -> str | None:
        """Give the path of the session with exactly this id, or None.

        Example:
            >>> SessionFinder.find_by_id("/code", "a1", "/no/such/folder") is None
            True
        """
        from sessiontree.listing import find_session_by_id

        return find_session_by_id(cwd, id, session_dir)

    @staticmethod
    def list(
        cwd: str,
        session_dir: str | None = None,
        on_progress: OnProgress | None = None,
        **how: Unpack[ListingOptions],
    ) -> Infos:
        """List the sessions of a working directory; see `sessiontree.listing.list_sessions`.

        Example:
            >>> SessionFinder.list("/code", "/no/such/folder")
            []
        """
        from sessiontree.listing import list_sessions

        return list_sessions(cwd, session_dir, on_progress, **how)

    @staticmethod
    def list_all(
        session_dir: str | None = None,
        on_progress: OnProgress | None = None,
        **how: Unpack[ListingOptions],
    ) -> Infos:
        """List the sessions of all folders; see `sessiontree.listing.list_all_sessions`."""
        from sessiontree.listing import list_all_sessions

        return list_all_sessions(session_dir, on_progress, **how)

    @staticmethod
    async def alist(
        cwd: str,
        session_dir: str | None = None,
        on_progress: OnProgress | None = None,
        **how: Unpack[ListingOptions],
    ) -> Infos:
        """Await what `list` gives; see `sessiontree.listing.alist_sessions`."""
        from sessiontree.listing import alist_sessions

        return await alist_sessions(cwd, session_dir, on_progress, **how)

    @staticmethod
    async def alist_all(
        session_dir: str | None = None,
        on_progress: OnProgress | None = None,
        **how: Unpack[ListingOptions],
    ) -> Infos:
        """Await what `list_all` gives; see `sessiontree.listing.alist_all_sessions`."""
        from sessiontree.listing import alist_all_sessions

        return await alist_all_sessions(session_dir, on_progress, **how)
