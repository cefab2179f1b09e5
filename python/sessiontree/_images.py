"""Moving large images out of session files and back; see `sessiontree.doctor.shrink`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from sessiontree import _native

if TYPE_CHECKING:
    PathLike = str | os.PathLike[str]

IMAGE: Final = re.compile(rb'"data"[ \t]*:[ \t]*"([A-Za-z0-9+/=]+)"')
_MOVED: Final = re.compile(rb'"data"[ \t]*:[ \t]*"(sessiontree-image:([0-9a-f]{64}))"')


def _folder_of_images(path: str) -> str:
    return f"{path}.images"


def shrink(path: PathLike, *, at_least: int = 65_536) -> int:
    """Move large images out of a session file, into files named by their content beside it.

    Each image's base64 text becomes ``sessiontree-image:<sha256>``, and stands in the folder
    ``<path>.images``; `restore` brings the very bytes back. Until then other programs see no image.

    Args:
        path: the file.
        at_least: bytes of base64 text from which on an image is moved.

    Returns:
        How many images were moved.

    Raises:
        OSError: the file cannot be read or replaced; then it is as it was.
    """
    from hashlib import sha256

    name = os.fspath(path)
    moved = 0

    def move(found: re.Match[bytes]) -> bytes:
        nonlocal moved
        data = found[1]
        if len(data) < at_least:
            return found[0]
        moved += 1
        digest = sha256(data).hexdigest()
        _store(os.path.join(_folder_of_images(name), digest), data)
        before, after = found.start(1) - found.start(), found.end(1) - found.start()
        return found[0][:before] + f"sessiontree-image:{digest}".encode() + found[0][after:]

    def parts() -> list[bytes] | None:
        nonlocal moved
        moved = 0
        with open(name, "rb") as file:
            data = IMAGE.sub(move, file.read())
        return [data] if moved else None

    _native.replace_file(name, parts)
    return moved


def _store(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if not os.path.exists(path):
        _native.create_file(path, [data], sync=True)


def restore(path: PathLike) -> int:
    """Bring the images back that `shrink` moved out; the file is byte for byte what it was.

    The files of the images stay: other sessions, or copies of this one, may need them.

    Returns:
        How many images were brought back.

    Raises:
        OSError: an image's file is missing, or its content is not what its name says; then the session
            file is as it was.
    """
    from hashlib import sha256

    name = os.fspath(path)
    back = 0

    def bring(found: re.Match[bytes]) -> bytes:
        nonlocal back
        digest = found[2].decode()
        image = os.path.join(_folder_of_images(name), digest)
        with open(image, "rb") as file:
            data = file.read()
        if sha256(data).hexdigest() != digest:
            raise OSError(None, "the image is damaged", image)
        back += 1
        before, after = found.start(1) - found.start(), found.end(1) - found.start()
        return found[0][:before] + data + found[0][after:]

    def parts() -> list[bytes] | None:
        nonlocal back
        back = 0
        with open(name, "rb") as file:
            data = _MOVED.sub(bring, file.read())
        return [data] if back else None

    _native.replace_file(name, parts)
    return back
