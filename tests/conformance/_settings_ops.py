"""Requests on layered settings."""

import os

from _encode import plain
from _names import call, public, snake
from _session_ops import attempt
from normalise import UNDEFINED


def put(run, path, spec):
    if spec is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(run.bytes_of(spec))


def settings(run, request, _host):
    global_path = os.path.join(run.agent, "settings.json")
    put(run, global_path, request.get("global"))
    put(run, os.path.join(run.cwd, ".pi", "settings.json"), request.get("project"))
    keywords = {"project_trusted": request["projectTrusted"]} if "projectTrusted" in request else {}
    made = []

    def create():
        made.append(public("SettingsManager").create(run.cwd, run.agent, **keywords))
        return True

    out = {"created": attempt(run, create)}
    if not made:
        return out
    manager = made[0]
    out["errors"] = [problem(run, e) for e in manager.drain_errors()]
    calls = request.get("calls") or [{"fn": "getCompactionSettings"}]
    out["calls"] = [one_call(run, manager, step) for step in calls]
    manager.flush()
    out["merged"] = run.enc(plain(manager.get_settings()))
    if request.get("showFiles"):
        out["globalAfter"] = described(run, global_path)
    return out


def one_call(run, manager, step):
    out = {"fn": step["fn"]}
    if step.get("args"):
        out["args"] = step["args"]

    def result():
        value = call(getattr(manager, snake(step["fn"])), [run.dec(a) for a in step.get("args") or []])
        return UNDEFINED if value is None else plain(value)

    out.update(attempt(run, result))
    return out


def problem(run, error):
    """A settings file that could not be read: its scope, its path and what kind of fault."""
    return {
        "scope": error.scope,
        "path": run.norm_text(error.path),
        # JSON.parse refused the text, or it holds something that is no object
        "name": "SyntaxError" if isinstance(error.error.__cause__, ValueError) else "TypeError",
    }


def described(run, path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return run.describe_bytes(f.read())


OPS = {"settings": settings}
