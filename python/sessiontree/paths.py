"""Where session files lie: pi's folders, and paths as pi reads them.

A path may begin with ``~`` (the home folder) or be a ``file://`` URL. Resolving is lexical: links are
not followed, and two paths are the same if their resolved texts are (on Windows: without regard to
case). The folder of a directory's sessions is ``<agent folder>/sessions/--<directory>--``, where the
directory's own separators and colons have become ``-``; so two directories can share a folder, and a
session's header says which one it belongs to.
"""

from __future__ import annotations

import os

AGENT_DIR_VARIABLE = "PI_CODING_AGENT_DIR"
SESSION_DIR_VARIABLE = "PI_CODING_AGENT_SESSION_DIR"

_SEPARATORS = str.maketrans("/\\:", "---")


def text_of(path: str | os.PathLike[str]) -> str:
    """Give a path as text.

    Raises:
        TypeError: It is neither text nor a path object.
    """
    if isinstance(path, str):
        return path
    text = path.__fspath__() if hasattr(path, "__fspath__") else None
    if not isinstance(text, str):
        hint = ", try os.fsdecode(path)" if isinstance(path, bytes) else ""
        raise TypeError(f"a path must be a str or os.PathLike, not {type(path).__name__}{hint}")
    return text


def normalize_path(path: str | os.PathLike[str]) -> str:
    """Expand ``~`` and ``file://`` in a path; a relative path stays relative.

    Args:
        path: A path, ``~``, ``~/...`` or a ``file://`` URL of this machine.

    Returns:
        The path as text.

    Raises:
        TypeError: It is neither text nor a path object; bytes are refused (``os.fsdecode`` makes text of them).
        ValueError: A ``file://`` URL that names another machine, or holds an encoded separator.

    Example:
        >>> normalize_path("file:///w/a%20b")
        '/w/a b'
    """
    text = text_of(path)
    if os.name == "nt":
        text = _from_shell(text)
    home = "~/" if os.name != "nt" else ("~/", "~\\")
    if text == "~":
        return os.path.expanduser("~")
    if text.startswith(home):
        return os.path.normpath(os.path.join(os.path.expanduser("~"), text[2:].lstrip("/")))
    if text.startswith("file://"):
        return _from_url(text)
    return text


def _from_shell(text: str) -> str:
    """Turn the drive paths of Unix-like shells on Windows (``/c/x``, ``/mnt/c/x``) into Windows paths."""
    bare = text.removeprefix("/mnt").removeprefix("/cygdrive")
    drive, rest = bare[1:2], bare[2:]
    if (
        "\\" in text
        or bare[:1] != "/"
        or not (drive.isascii() and drive.isalpha())
        or rest[:1] not in ("", "/")
    ):
        return text
    return f"{drive.upper()}:\\" + rest[1:].replace("/", "\\")


def _from_url(url: str) -> str:
    from urllib.parse import unquote_to_bytes, urlsplit

    parts = urlsplit(url)
    host = "" if parts.netloc == "localhost" else parts.netloc
    encoded = parts.path.lower()
    if "%2f" in encoded or (os.name == "nt" and "%5c" in encoded):
        raise ValueError(f"a file URL must not hold encoded separators: {url!r}")
    path = unquote_to_bytes(parts.path).decode("utf-8", "surrogateescape")
    if os.name == "nt":
        return _windows_path(url, host, path.replace("/", "\\"))
    if host:
        raise ValueError(f"a file URL must not name another machine: {url!r}")
    return _lexical(path or "/")


def _windows_path(url: str, host: str, path: str) -> str:
    if host:
        return f"\\\\{host}{path}"
    if path[2:3] != ":" or not (path[1:2].isascii() and path[1:2].isalpha()):
        raise ValueError(f"a file URL must name a drive: {url!r}")
    return path[1:]


def resolve_path(path: str | os.PathLike[str], base: str | os.PathLike[str] | None = None) -> str:
    """Make a path absolute, without ``.`` and ``..``; links are not followed.

    Args:
        path: As for `normalize_path`.
        base: What a relative path starts from; the process's directory if left out.

    Raises:
        ValueError: As for `normalize_path`.

    Example:
        >>> resolve_path("x/../proj/", "/code")
        '/code/proj'
    """
    text = normalize_path(path)
    if not os.path.isabs(text):
        start = os.getcwd() if base is None else resolve_path(base)
        text = os.path.join(start, text)
    return _lexical(text)


def _lexical(absolute: str) -> str:
    """`os.path.normpath`, but two slashes in front are one, as in Node."""
    text = os.path.normpath(absolute)
    return text[1:] if os.sep == "/" and text.startswith("//") else text


def join(folder: str, name: str) -> str:
    """The path of a name in a folder, without ``.`` and ``..``; relative if the folder is."""
    return os.path.normpath(os.path.join(folder, name))


def paths_equal(left: str, right: str) -> bool:
    """Whether two paths are the same text once resolved (without regard to case on Windows).

    Example:
        >>> paths_equal("/code/proj/", "/code/./proj")
        True
    """
    return _comparable(left) == _comparable(right)


def _comparable(path: str) -> str:
    text = _lexical(os.path.abspath(path))
    return text.lower() if os.name == "nt" else text


def agent_dir() -> str:
    """The folder of pi: ``PI_CODING_AGENT_DIR``, or ``~/.pi/agent``."""
    given = os.environ.get(AGENT_DIR_VARIABLE)
    return normalize_path(given) if given else os.path.join(os.path.expanduser("~"), ".pi", "agent")


def sessions_root() -> str:
    """The folder that holds the session folders of all directories."""
    return join(agent_dir(), "sessions")


def session_dir_from_environment() -> str | None:
    """The session folder that ``PI_CODING_AGENT_SESSION_DIR`` names; programs ask for it, the library does not."""
    given = os.environ.get(SESSION_DIR_VARIABLE)
    return normalize_path(given) if given else None


def encode_cwd(cwd: str | os.PathLike[str]) -> str:
    """The name of the folder that holds a directory's sessions.

    Example:
        >>> encode_cwd("/code/my-proj")
        '--code-my-proj--'
    """
    resolved = resolve_path(cwd)
    bare = resolved[1:] if resolved[:1] in ("/", "\\") else resolved
    return f"--{bare.translate(_SEPARATORS)}--"


def default_session_dir(cwd: str | os.PathLike[str], agent: str | os.PathLike[str] | None = None) -> str:
    """The folder of a directory's sessions, whether it exists or not; nothing is created."""
    root = resolve_path(agent_dir() if agent is None else agent)
    return os.path.join(root, "sessions", encode_cwd(cwd))


def get_default_session_dir(
    cwd: str | os.PathLike[str], agent_dir: str | os.PathLike[str] | None = None
) -> str:
    """The folder of a directory's sessions, created if it is missing.

    Folders are created readable by their owner only; existing ones stay as they are.

    Args:
        cwd: The directory that the sessions belong to.
        agent_dir: pi's folder; `agent_dir` if left out.

    Raises:
        OSError: The folder cannot be created.
        ValueError: As for `normalize_path`.
    """
    folder = default_session_dir(cwd, agent_dir)
    make_private_dirs(folder)
    return folder


def make_private_dirs(folder: str) -> None:
    """Create a folder and what is missing above it, all of it with mode 0700."""
    missing = []
    at = os.path.abspath(folder)
    while not os.path.isdir(at):
        missing.append(at)
        above = os.path.dirname(at)
        if above == at:
            break
        at = above
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            # Somebody else was faster; a file in the way is an error.
            if not os.path.isdir(path):
                raise
