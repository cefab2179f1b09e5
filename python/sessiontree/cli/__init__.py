"""The command line; ``sessiontree --help`` lists the commands, each of which is a module here.

Exit codes: 0 all went well, 1 something failed or was not found, 2 wrong usage, 130 interrupted. Trouble
is one line on stderr, never a traceback; ``SESSIONTREE_TRACEBACK=1`` shows one for a fault of the program.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_EXTRA = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: what follows the program's name; taken from the process if left out.

    Returns:
        The exit code.

    Example:
        >>> main(["list", "--cwd", "/no/sessions/here", "--json"])
        []
        0
    """
    import sys

    _stand_in_for_closed()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _look_early(words)
        if arguments is None:
            _import_uncollected()
        from sessiontree.cli import _app
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in _EXTRA:
            raise
        print(
            f"sessiontree: the command line needs '{missing}': pip install 'sessiontree[cli]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        return 130
    return _app.run(words)


def _import_uncollected() -> None:
    """Import the program without the collector, which finds nothing in modules and takes an eighth of the time.

    What is there then is left alone for good. So this is for a process that is the program and nothing else.
    """
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        from sessiontree.cli import _app  # noqa: F401
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _look_early(words: list[str]) -> None:
    """Let a list of pi's folders look at their files while the rest of the program is imported."""
    import os

    if words[:1] != ["list"] or any(word.startswith(("--session-dir", "--cwd", "--watch")) for word in words):
        return
    from sessiontree import paths, shown

    if os.environ.get(paths.SESSION_DIR_VARIABLE):
        return
    if "--all" in words:
        shown.look_early(paths.sessions_root(), "below")


def _stand_in_for_closed() -> None:
    """Let nothing be written where the caller has closed a standard stream (``>&-``)."""
    import os
    import sys

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the process
