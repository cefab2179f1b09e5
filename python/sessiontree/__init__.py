"""sessiontree: the conversation histories of AI agents, as trees in append-only files."""

from sessiontree.entries import CURRENT_SESSION_VERSION, UNSET
from sessiontree.host import Host
from sessiontree.manager import SessionManager

__all__ = ["CURRENT_SESSION_VERSION", "UNSET", "Host", "SessionManager"]
