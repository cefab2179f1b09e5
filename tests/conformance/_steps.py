"""Steps on a SessionManager: its methods by pi's names, and `$` steps on files and ids."""

import os
import shutil

from _encode import manager, plain, projection
from _errors import translate
from _names import call, options, public, snake
from normalise import UNDEFINED, JsError

READS = frozenset(
    [
        "getBranch",
        "getTree",
        "getChildren",
        "getLabel",
        "getEntry",
        "getLeafEntry",
        "buildContextEntries",
        "buildSessionProjection",
        "buildSessionContext",
        "getSessionName",
        "getLeafId",
        "getEntries",
        "getEntryCount",
        "getHeader",
        "getSessionId",
        "getSessionFile",
        "getSessionDir",
        "getCwd",
        "isPersisted",
        "usesDefaultSessionDir",
    ]
)
# Methods whose missing answer is JavaScript's undefined and not null.
MAYBE_UNDEFINED = frozenset(
    [
        "getLeafEntry",
        "getEntry",
        "getLabel",
        "getSessionName",
        "getSessionFile",
        "createBranchedSession",
        "newSession",
        "setSessionFile",
        "branch",
        "resetLeaf",
    ]
)
# Where pi's answer for undefined is not the one for null: positions of arguments that are then left out.
UNDEFINED_IS_NOT_NULL = {"branchWithSummary": (0,), "appendContextEdit": (1,)}


class Steps:
    """The managers of one request (two of them stand for two processes) and what was done to them."""

    def __init__(self, run, host):
        self.run = run
        self.host = host
        self.managers = {}

    def open(self, path):
        return public("SessionManager").open(path, host=self.host)

    def run_all(self, steps):
        return [self.run_one(step) for step in steps or []]

    def run_one(self, step):
        out = {"op": step["op"]}
        if step.get("on"):
            out["on"] = step["on"]
        args = [self.run.dec(a) for a in step.get("args") or []]
        try:
            out["ok"] = self.run.enc(self.result(step, args))
        except Exception as error:  # whatever the library raises is the result of the step
            target = args[0] if args else UNDEFINED
            path = self.resolve(target) if step["op"] == "setSessionFile" else self.path_of(step)
            out["error"] = self.run.enc_error(translate(error, path=path, target=target))
        if step["op"] not in READS and not step["op"].startswith("$"):
            session = self.managers[step.get("on", "a")]
            out["leaf"] = self.run.enc(session.get_leaf_id())
            out["count"] = self.run.enc(session.get_entry_count())
        return out

    def path_of(self, step):
        return self.run.path_of(step["path"]) if "path" in step else None

    @staticmethod
    def resolve(path):
        return os.path.normpath(os.path.join(os.getcwd(), path)) if isinstance(path, str) else path

    def result(self, step, args):
        op = step["op"]
        if op.startswith("$"):
            return self.special(op[1:], step, args)
        session = self.managers[step.get("on", "a")]
        if op == "newSession":
            value = session.new_session(**options(args[0] if args else UNDEFINED))
        else:
            method = getattr(session, snake(op), None)
            if method is None:
                raise JsError(f"SessionManager has no {snake(op)!r}", "MissingName")
            value = call(method, args, UNDEFINED_IS_NOT_NULL.get(op, ()))
        if op == "buildSessionProjection":
            return projection(value)
        if op == "getChildren" and args and args[0] is UNDEFINED:
            # Python's None is null; entries without the key are picked from all of them.
            value = [e for e in session.get_entries() if isinstance(e, dict) and "parentId" not in e]
        if value is None and op in MAYBE_UNDEFINED:
            return UNDEFINED
        return os.fspath(value) if isinstance(value, os.PathLike) else plain(value)

    def special(self, op, step, args):
        function = getattr(self, f"do_{snake(op)}", None)
        if function is None:
            raise JsError(f"no step ${op}", "MissingName")
        return function(step, args)

    # ---- files, as another program would change them
    def do_write(self, step, _args):
        with open(self.path_of(step), "wb") as f:
            f.write(self.run.bytes_of(step["src"]))
        return UNDEFINED

    def do_append(self, step, _args):
        with open(self.path_of(step), "ab") as f:
            f.write(self.run.bytes_of(step["src"]))
        return UNDEFINED

    def do_unlink(self, step, _args):
        os.unlink(self.path_of(step))
        return UNDEFINED

    def do_rmrf(self, step, _args):
        path = self.path_of(step)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        return UNDEFINED

    def do_mkdir(self, step, _args):
        os.makedirs(self.path_of(step), exist_ok=True)
        return UNDEFINED

    def do_read(self, step, _args):
        with open(self.path_of(step), "rb") as f:
            return self.run.describe_bytes(f.read())

    def do_ls(self, step, _args):
        return list(self.run.list_tree(self.path_of(step) or self.run.dir))

    def do_tree(self, step, _args):
        return self.run.list_tree(self.path_of(step) or self.run.dir)

    # ---- ids, other managers, whole-session functions
    def do_ids(self, _step, args):
        self.run.id_plan = list(args[0])
        return UNDEFINED

    def do_open(self, step, _args):
        name = step.get("on", "a")
        old = self.managers.pop(name, None)
        if old is not None:
            old.close()
        self.managers[name] = self.open(self.path_of(step))
        return UNDEFINED

    def do_serialize_branch(self, step, _args):
        return public("serialize_session_branch")(self.managers[step.get("on", "a")], host=self.host)

    def do_usage_cost_breakdown(self, step, _args):
        entries = self.managers[step.get("on", "a")].get_entries()
        return plain(public("get_usage_cost_breakdown")(entries))

    def do_mutate_message(self, step, _args):
        session = self.managers[step.get("on", "a")]
        message = {"role": "user", "content": "before", "timestamp": 1}
        entry_id = session.append_message(message)
        message["content"] = "after"
        return session.get_entry(entry_id)["message"]["content"]

    # ---- the frame of a request on one manager
    def described(self):
        return self.run.enc(manager(self.managers["a"]))

    def close(self):
        for session in self.managers.values():
            session.close()
