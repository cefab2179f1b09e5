"""Moving large images out of session files and back; see `sessiontree.doctor.shrink`."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import TYPE_CHECKING, Final

from sessiontree import _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    PathLike = str | os.PathLike[str]
    Progress = Callable[[int, int], None]

_MARK: Final = b"sessiontree-image:"
_PREFIX: Final = _MARK.decode()
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/=]*")
_TEMPORARY: Final = ".sessiontree-tmp"
# A link in the place of the folder or of a file is not followed; a pipe is not waited for.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# Where it can be, files are named from the open folder on: whatever is put in its place later is not used.
_FROM_FOLDER: Final = {os.open, os.rename, os.unlink} <= os.supports_dir_fd


class Images:
    """The folder of images beside a session file: each is named by the SHA-256 of its base64 text."""

    def __init__(self, path: PathLike) -> None:
        # Beside the file itself, whatever link leads there.
        self.folder = f"{os.path.realpath(path)}.images"
        self._fd: int | None = None
        self._known: set[str] = set()
        self._troubles: dict[bytes, tuple[bool, bytes] | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._fd is not None:
            os.close(self._fd)

    def put(self, data: bytes) -> bytes:
        """Keep an image; what stands for it."""
        digest = _digest(data)
        if digest not in self._known:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder, 0o700)
            self._enter_folder()
            if not self._holds(digest):
                self._write(digest, data)
            self._known.add(digest)
        return b"%s%s:%d" % (_MARK, digest.encode(), len(data))

    def get(self, mark: bytes) -> bytes:
        """The image that a mark stands for."""
        digest, length = _parts(mark)
        self._enter_folder()
        with open(self._open(digest, os.O_RDONLY), "rb") as file:
            # Nothing is read of what cannot be it: it may be of any size, and have no end.
            if not _difference(os.fstat(file.fileno()), length):
                data = file.read(length + 1)
                if len(data) == length and _digest(data) == digest and _BASE64.fullmatch(data):
                    return data
        raise OSError(errno.EIO, "the image is damaged", os.path.join(self.folder, digest))

    def trouble(self, mark: bytes, *, read: bool) -> tuple[bool, bytes] | None:
        """What is wrong with the file of an image; whether it is lost, and in words.

        Its contents are looked at only if they are to be read.
        """
        if mark not in self._troubles:
            self._troubles[mark] = self._look(mark, read=read)
        return self._troubles[mark]

    def _look(self, mark: bytes, *, read: bool) -> tuple[bool, bytes] | None:
        digest, length = _parts(mark)
        try:
            self._enter_folder()
            status = os.stat(self._place(digest), dir_fd=self._fd, follow_symlinks=False)
            lost, text = False, _difference(status, length)
            if not text and read:
                self.get(mark)
        except OSError as error:
            lost, text = isinstance(error, FileNotFoundError), (error.strerror or str(error)).lower()
        if not text:
            return None
        return lost, f"{text}: {os.path.join(self.folder, digest)!r}".encode("utf-8", "replace")

    def _enter_folder(self) -> None:
        if self._fd is None and _FROM_FOLDER:
            try:
                self._fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
            except OSError:
                if os.path.islink(self.folder):
                    raise OSError(errno.ELOOP, "the images' folder is a link", self.folder) from None
                raise

    def _place(self, name: str) -> str:
        return name if self._fd is not None else os.path.join(self.folder, name)

    def _open(self, name: str, flags: int) -> int:
        try:
            return os.open(self._place(name), flags | _NO_LINK, 0o600, dir_fd=self._fd)
        except OSError as error:
            error.filename = os.path.join(self.folder, name)
            raise

    def _read(self, name: str) -> bytes:
        with open(self._open(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def _holds(self, digest: str) -> bool:
        try:
            return _digest(self._read(digest)) == digest
        except OSError:
            return False

    def _write(self, digest: str, data: bytes) -> None:
        """Write an image, all or nothing; it is on the device before the session file lets go of it."""
        name = f"{digest}{_TEMPORARY}"
        with contextlib.suppress(FileNotFoundError):  # of a writer that was killed
            os.unlink(self._place(name), dir_fd=self._fd)
        with open(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._place(name), self._place(digest), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        if self._fd is not None:
            os.fsync(self._fd)


def is_mark(text: object) -> bool:
    """Say whether this is a text that stands for an image that was moved out."""
    return (
        isinstance(text, str)
        and text.startswith(_PREFIX)
        and _native.moved_image(text.encode("utf-8", "replace")) is not None
    )


def _parts(mark: bytes) -> tuple[str, int]:
    """Give the hash and the length that a mark names."""
    found = _native.moved_image(mark)
    if found is None:
        raise ValueError(f"{mark!r} stands for no image")
    return found


def _difference(status: os.stat_result, length: int) -> str:
    """Say what tells a file from an image of a length, without reading it."""
    if not stat.S_ISREG(status.st_mode):
        return "a link, not a file" if stat.S_ISLNK(status.st_mode) else "not a file"
    return "" if status.st_size == length else f"{status.st_size:,} bytes, not {length:,}"


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def shrink(path: PathLike, *, at_least: int = 65_536, progress: Progress | None = None) -> int:
    """Move large images out of a session file, into files named by their content beside it.

    Each image's base64 text becomes ``sessiontree-image:<sha256>:<length>``, and stands in the folder
    ``<path>.images``; `restore` brings the very bytes back. Until then other programs see no image. An
    image is an object of type ``image``, or one with a media type ``image/...``, and with its base64 text
    as ``data``. Images in damaged lines stay where they are.

    Args:
        path: the file; if it is a link, the file it names.
        at_least: bytes of base64 text from which on an image is moved.
        progress: is told now and then how many bytes of how many have been read.

    Returns:
        How many images were moved.

    Raises:
        OSError: the file cannot be read or replaced; then it is as it was.
        InvalidSessionError: it has no session header.
        UnsupportedVersionError: its version is newer than 3.
    """
    with Images(path) as images:

        def move(data: bytes) -> bytes | None:
            return None if len(data) < at_least or data.startswith(_MARK) else images.put(data)

        return _native.exchange_images(path, move, progress=progress)


def restore(path: PathLike, *, progress: Progress | None = None) -> int:
    """Bring the images back that `shrink` moved out; the file is byte for byte what it was.

    The files of the images stay: other sessions, or copies of this one, may need them.

    Args:
        path: the file; if it is a link, the file it names.
        progress: is told now and then how many bytes of how many have been read.

    Returns:
        How many images were brought back.

    Raises:
        OSError: an image's file is missing, or its content is not what its name says; then the session
            file is as it was.
        InvalidSessionError: the file has no session header.
        UnsupportedVersionError: its version is newer than 3.
    """
    with Images(path) as images:

        def bring(data: bytes) -> bytes | None:
            return images.get(data) if data.startswith(_MARK) else None

        return _native.exchange_images(path, bring, progress=progress)
