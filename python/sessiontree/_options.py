"""The keyword options that all ways of opening a session share, as type checkers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from sessiontree.host import Host


class OpenOptions(TypedDict, total=False):
    """Options of open, create, continue_recent, in_memory and fork_from."""

    read_only: bool
    strict: bool
    durability: Literal["os", "flush", "fsync"]
    cache: bool
    remember_leaf: bool
    lenient_header: bool
    host: Host | None
