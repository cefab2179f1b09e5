"""Requests on session files: load, open, create, fork, list, find."""

import os
import threading

from _encode import plain, session_info
from _errors import translate
from _names import clean, given, options, public
from _steps import Steps
from normalise import UNDEFINED, JsError

# pi reads its clock this often while it opens a file. It shows only where a file is not UTF-8: such files
# are recorded as they are, with the time of the fake clock in them.
READINGS_OF_OPEN = 4


def folder(run, request):
    """The session folder that a request names: the scenario's own, pi's default (None) or a given one."""
    if request.get("sessionDir") == "default":
        return None
    given_dir = run.optional(request, "sessionDir")
    return run.dir if given_dir is UNDEFINED or given_dir is None else given_dir


def absolute(path):
    return os.path.normpath(os.path.join(os.getcwd(), os.path.expanduser(path)))


def attempt(run, function, **context):
    """``{"ok": ...}`` or ``{"error": ...}`` in pi's words."""
    try:
        return {"ok": run.enc(function())}
    except Exception as error:  # whatever the library raises is the result
        return {"error": run.enc_error(translate(error, **context))}


def load(run, request, _host):
    path = run.open_session(request)
    before = None
    if os.path.isfile(path):
        with open(path, "rb") as f:
            before = f.read()
    out = attempt(run, lambda: plain(public("load_entries_from_file")(path, seal=True)))
    if before is not None:
        with open(path, "rb") as f:
            after = f.read()
        out["after"] = run.describe_bytes(after)
        kept = after[: len(before)] == before
        out["appended"] = after[len(before) :].decode("latin-1") if kept else "REWRITTEN"
    return out


def with_manager(run, request, host, make, path=None, *, fork=False, closed=False):
    """Open by ``make``, run the steps, describe before and after, and list the files."""
    steps = Steps(run, host)
    out = {}
    try:
        steps.managers["a"] = make()
        out["opened"] = steps.described()
    except Exception as error:  # refusing is a result too
        out["openError"] = run.enc_error(translate(error, path=path, fork=fork))
    try:
        if "opened" in out:
            out["steps"] = steps.run_all(request.get("ops"))
            if closed:
                out["closed"] = steps.described()
        return run.finish(out)
    finally:
        steps.close()


def open_(run, request, host):
    path = run.open_session(request)
    name = run.dec_text(request["path"]) if "path" in request else path
    keywords = given(
        session_dir=run.optional(request, "sessionDir"), cwd_override=run.optional(request, "cwdOverride")
    )

    def make():
        session = public("SessionManager").open(name, **keywords, host=host)
        for _ in range(READINGS_OF_OPEN):
            run.clock_ms()
        return session

    return with_manager(run, request, host, make, path=absolute(name), closed=True)


def create(run, request, host):
    run.put_files(request.get("files"))
    cwd = run.optional(request, "cwd", run.cwd)
    keywords = options(run.optional(request, "options"))

    def make():
        manager = public("SessionManager")
        if request.get("inMemory"):
            entries = given(entries=clean(run.optional(request, "entries")))
            return manager.in_memory(cwd, **entries, **keywords, host=host)
        return manager.create(cwd, session_dir=folder(run, request), **keywords, host=host)

    return with_manager(run, request, host, make, closed=True)


def continue_recent(run, request, host):
    run.put_files(request.get("files"))
    cwd = run.optional(request, "cwd", run.cwd)
    make = lambda: public("SessionManager").continue_recent(cwd, folder(run, request), host=host)  # noqa: E731
    return with_manager(run, request, host, make)


def fork_from(run, request, host):
    path = run.open_session(request)
    name = run.dec_text(request["path"]) if "path" in request else path
    target = run.optional(request, "targetCwd", run.cwd)
    keywords = options(run.optional(request, "options"))
    make = lambda: public("SessionManager").fork_from(  # noqa: E731
        name, target, session_dir=folder(run, request), **keywords, host=host
    )
    return with_manager(run, request, host, make, path=absolute(name), fork=True)


def cancel_event(request):
    """pi's AbortSignal: set before the call, or never."""
    event = threading.Event()
    if request.get("aborted") or request.get("signal") == "aborted":
        event.set()
    elif request.get("signal") != "live":
        return None
    return event


def listing(run, function, cancel):
    """The listed sessions; a cancelled listing is pi's AbortError."""
    try:
        return {"ok": run.enc([session_info(info) for info in function()])}
    except Exception as error:
        cancelled = cancel is not None and cancel.is_set()
        shown = JsError("This operation was aborted", "AbortError", 20) if cancelled else translate(error)
        return {"error": run.enc_error(shown)}


def progress_log():
    """A progress callback and the list of what it saw."""
    seen = []

    def on_progress(loaded, total, partial):
        seen.append({"loaded": loaded, "total": total, "partial": None if partial is None else len(partial)})

    return on_progress, seen


def list_(run, request, _host):
    run.put_files(request.get("files"))
    cwd = run.optional(request, "cwd", run.cwd)
    on_progress, seen = progress_log()
    cancel = cancel_event(request)
    callback = on_progress if request.get("progress") else None
    out = listing(
        run,
        lambda: public("SessionManager").list(cwd, folder(run, request), callback, cancel=cancel),
        cancel,
    )
    if request.get("progress"):
        out["progress"] = seen
    return out


def list_all(run, request, _host):
    run.put_files(request.get("files"))
    cancel = cancel_event(request)
    on_progress, seen = progress_log()

    def listed(callback):
        return public("SessionManager").list_all(folder(run, request), callback, cancel=cancel)

    if not request.get("progress"):
        return listing(run, lambda: listed(None), cancel)
    out = listing(run, lambda: listed(on_progress), cancel)
    return {**out, "progress": seen, "withoutProgress": listing(run, lambda: listed(None), cancel)}


def maybe(value, nothing=None):
    """A path, or what stands for none: null or undefined, by the function."""
    return nothing if value is None else str(value)


def find_most_recent(run, request, _host):
    run.put_files(request.get("files"))
    cwd = run.optional(request, "cwd")
    args = [] if cwd is UNDEFINED else [cwd]
    return attempt(run, lambda: maybe(public("find_most_recent_session")(folder(run, request), *args)))


def find_by_id(run, request, _host):
    run.put_files(request.get("files"))
    cwd = run.optional(request, "cwd", run.cwd)
    session_id = run.dec(request["id"])
    find = public("SessionManager").find_by_id
    return attempt(run, lambda: maybe(find(cwd, session_id, folder(run, request)), UNDEFINED))


def default_session_dir(run, request, _host):
    keywords = given(agent_dir=run.optional(request, "agentDir"))
    cwd = run.dec(request["cwd"])
    return attempt(run, lambda: str(public("get_default_session_dir")(cwd, **keywords)))


OPS = {
    "load": load,
    "open": open_,
    "create": create,
    "continueRecent": continue_recent,
    "forkFrom": fork_from,
    "list": list_,
    "listAll": list_all,
    "findMostRecent": find_most_recent,
    "findById": find_by_id,
    "defaultSessionDir": default_session_dir,
}
