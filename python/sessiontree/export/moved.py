"""Images that `sessiontree.doctor.shrink` moved out of a session, brought back into what is shown of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree._images import Images, is_mark

if TYPE_CHECKING:
    from sessiontree.manager import SessionManager

LOST = (
    "[An image that was moved out of the session's file, and is lost or damaged since: "
    "'sessiontree doctor --read-images' says what is wrong with it.]"
)
"""What is shown in the place of an image that cannot be brought back."""

# As deep as the core looks for images.
_DEEP = 64
_MEDIA = ("mimeType", "mediaType", "media_type")


class MovedOut:
    """Brings images back into entries; the session's file stays as it is.

    Args:
        path: the session's file; None for a session without one.

    Attributes:
        lost: how many could not be brought back.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self.lost = 0

    @classmethod
    def of(cls, session: SessionManager) -> MovedOut:
        """Give that of a session."""
        return cls(session.get_session_file())

    def restore(self, entry: Any) -> Any:
        """Bring the images of an entry back, in place; what is lost or damaged stays a mark."""
        work = [(entry, 1)]
        while work:
            value, depth = work.pop()
            if isinstance(value, dict):
                if is_mark(value.get("data")) and _is_image(value):
                    value["data"] = self._content(value["data"])
                inner: Any = value.values()
            elif isinstance(value, list):
                inner = value
            else:
                continue
            if depth < _DEEP:
                work.extend((each, depth + 1) for each in inner if isinstance(each, (dict, list)))
        return entry

    def _content(self, mark: str) -> str:
        try:
            if self._path is not None:
                with Images(self._path) as images:
                    return images.get(mark.encode()).decode()
        except OSError:
            pass
        self.lost += 1
        return mark


def _is_image(block: dict[str, Any]) -> bool:
    kinds = (block.get(name) for name in _MEDIA)
    return block.get("type") == "image" or any(
        isinstance(kind, str) and kind.startswith("image/") for kind in kinds
    )
