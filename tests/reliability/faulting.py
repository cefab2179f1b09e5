"""Makes every system call of every writing operation fail, once and for good, and looks at what is left.

Run as a program with ``faults.c`` preloaded: ``python -m reliability.faulting [every]``. It prints how
often each kind of fault was tried. A failed operation must raise OSError with errno and path, leave
memory and disk as they were, and work when it is tried again; where an operation survives the fault,
all must be there.
"""

import collections
import ctypes
import errno
import sys
import tempfile
from pathlib import Path

from sessiontree.exceptions import SessionFileLostError, SettingsError

from .operations import CASES, quiet
from .sessions import left_over

KINDS = [
    "write",
    "sync",
    "cut",
    "link",
    "rename",
    "unlink",
    "open",
    "stat",
    "lock",
    "seek",
    "read",
    "mkdir",
    "chmod",
]
WRITE, UNLINK, CUT = KINDS.index("write"), KINDS.index("unlink"), KINDS.index("cut")
ERRORS = dict.fromkeys(KINDS, (errno.EIO, errno.ENOSPC))
ERRORS["link"] = (errno.EIO, errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP)
ERRORS["lock"] = (errno.EIO, errno.EINTR, errno.ENOLCK, errno.EOPNOTSUPP)
ERRORS["open"] = (errno.EIO, errno.EACCES, errno.EMFILE, errno.EINTR)
ERRORS["rename"] = (errno.EIO, errno.EBUSY)
PASSING = {("lock", errno.EINTR), ("open", errno.EINTR)}
"""What is no failure if it happens once."""


class Faults:
    """The preloaded library."""

    def __init__(self):
        self.lib = ctypes.CDLL(None)
        self.lib.fault_count.restype = ctypes.c_long
        self.tried = collections.Counter()

    def arm(self, kind, nth, error, *, bytes=-1, sticky=False):
        self.lib.fault_arm(kind, ctypes.c_long(nth), error, ctypes.c_long(bytes), sticky)

    def disarm(self):
        """Let all calls through again; how often each kind was called since the last time."""
        counts = [self.lib.fault_count(kind) for kind in range(len(KINDS))]
        self.lib.fault_disarm()
        return counts


def run(case, faults, arm):
    """Do a case's deed under faults; the error, if there was one."""
    faults.disarm()
    arm()
    try:
        case.act()
    except (OSError, SessionFileLostError, SettingsError) as error:
        return error
    finally:
        faults.disarm()
    return None


def attempt(kind, faults, arm, what):
    """One case under one fault: failed whole and repeatable, or done whole."""
    with tempfile.TemporaryDirectory() as folder:
        case = kind(Path(folder))
        case.cut_fails = "cut_fails=True" in what or what.startswith("cut")
        try:
            error = run(case, faults, arm)
            if error is not None:
                check_error(error, named=case.names_its_file)
                case.check_said(error)
                case.check_failed()
                if "unlink" not in what:
                    assert not left_over(folder), left_over(folder)
                case.act()
            case.check_done()
        except BaseException as error:
            error.add_note(f"{kind.__name__}: {what}")
            raise
    faults.tried[what.split()[0]] += 1


def check_error(error, *, named):
    if isinstance(error, OSError):
        assert error.errno, repr(error)
        assert error.filename or not named, repr(error)
    else:
        assert "/" in str(error), repr(error)


def calls(kind, faults):
    """How often a case calls what, once all modules are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        kind(Path(folder)).act()
    with tempfile.TemporaryDirectory() as folder:
        case = kind(Path(folder))
        faults.disarm()
        case.act()
        return faults.disarm()


def fail_each_call(kind, faults, every):
    stride = kind.stride if every > 1 else 1
    for number, count in enumerate(calls(kind, faults)):
        name = KINDS[number]
        if name in kind.spared:
            continue
        for error in ERRORS[name]:
            for nth in range(1, count + 1, stride):
                for sticky in (False, True) if (name, error) not in PASSING else (False,):
                    what = f"{name} {nth} {errno.errorcode[error]} sticky={sticky}"
                    attempt(kind, faults, lambda: faults.arm(number, nth, error, sticky=sticky), what)  # noqa: B023


def stop_each_write(kind, faults, every):
    """Each write stops short at each byte; the file is cut back, or (where it cannot be) sealed later."""
    stride = kind.stride if every > 1 else 1
    for nth in range(1, calls(kind, faults)[WRITE] + 1, stride):
        for stop in range(0, 400, max(every, kind.step)):
            for cut_fails in (False, True):

                def arm():
                    faults.arm(WRITE, nth, errno.ENOSPC, bytes=stop, sticky=True)  # noqa: B023
                    if cut_fails:  # noqa: B023
                        faults.arm(CUT, 1, errno.EIO, sticky=True)

                attempt(kind, faults, arm, f"short write {nth} at {stop} cut_fails={cut_fails}")


def main():
    quiet()
    faults = Faults()
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for kind in CASES:
        fail_each_call(kind, faults, every)
        stop_each_write(kind, faults, every)
    for what, count in faults.tried.items():
        print(what, count)


if __name__ == "__main__":
    main()
