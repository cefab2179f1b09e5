"""sessiontree's part in the comparison."""

import os
import re
import subprocess
import sys

from stopwatch import (
    digest,
    digest_of_body,
    digest_of_file,
    digest_of_infos,
    digest_of_messages,
    main,
    message,
    opening_message,
    the_only_file,
)

IMPORTING = """
import sys, time
start = time.perf_counter()
import sessiontree
manager = sessiontree.SessionManager
if "use" in sys.argv:
    session = manager.in_memory("/code/app")
    session.append_message({"role": "user", "content": "hello", "timestamp": 0})
    session.build_session_context()
print(time.perf_counter() - start, sessiontree.CURRENT_SESSION_VERSION)
"""


def importing(request, clock):
    """In a process that has imported nothing else; the name asked for is there then, too."""
    with clock:
        command = [sys.executable, "-c", IMPORTING, *(["use"] if request.get("use") else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, version = done.stdout.split()
    clock.seconds = float(seconds)
    return {"version": int(version)}


def loaded():
    """Import what is imported at the first use; pi's modules are all there before the clock starts."""
    from sessiontree import SessionManager

    session = SessionManager.in_memory("/code/app")
    session.append_message(opening_message())
    session.build_session_context()
    return SessionManager


def opened(request, **how):
    from sessiontree import SessionManager

    return SessionManager.open(request["file"], cache=request.get("cache", False), **how)


def open_session(request, clock):
    loaded()
    with clock:
        session = opened(request)
    return {"entries": session.get_entry_count(), "leaf": session.get_leaf_id()}


def context(request, clock):
    loaded()
    with clock:
        made = opened(request).build_session_context()
    answer = {"messages": len(made.messages)}
    if request.get("check"):
        answer["hash"] = digest_of_messages(made.messages)
    return answer


def path_rows(request, clock):
    # Who wants arrays has numpy, whose import takes longer than most paths.
    import numpy  # noqa: F401, ICN001

    session = opened(request)
    with clock:
        rows = session.path_rows()
    return {"length": len(rows), "last": session.get_leaf_id()}


def path_ids(request, clock):
    session = opened(request)
    with clock:
        ids = session.path_ids()
    return {"length": len(ids), "first": ids[0], "last": ids[-1]}


def path_ids_listed(request, clock):
    session = opened(request)
    with clock:
        ids = list(session.path_ids())
    return {"length": len(ids), "first": ids[0], "last": ids[-1]}


def tree(request, clock):
    session = opened(request)
    with clock:
        waiting, nodes = list(session.get_tree()), 0
        while waiting:
            nodes += 1
            waiting += waiting.pop().children
    return {"nodes": nodes}


# ---- many sessions


def listed(request, clock, **how):
    from sessiontree import SessionManager

    folder, cwd = request.get("folder"), request.get("cwd")
    with clock:
        if cwd is None:
            infos = SessionManager.list_all(folder, **how)
        else:
            infos = SessionManager.list(cwd, folder, **how)
    answer = {"sessions": len(infos), "messages": sum(info.message_count for info in infos)}
    if request.get("check"):
        answer["hash"] = digest_of_infos(
            [i.id, i.name, i.message_count, i.first_message, i.modified_ms, len(i.all_messages_text)]
            for i in infos
        )
    return answer


def listed_with_progress(request, clock):
    calls = []

    def progress(loaded, total, partial):
        calls.append((loaded, total, partial is not None))

    answer = listed(request, clock, on_progress=progress)
    return {**answer, "calls": len(calls), "shown": sum(shown for _, _, shown in calls)}


def first(request, clock):
    from sessiontree import iter_sessions

    loaded()
    with clock:
        info = next(iter_sessions(request.get("folder")))
    return {"file": os.path.basename(info.path)}


def agent_folders(request):
    """The folders that hold a request's sessions."""
    return [request["folder"] if "folder" in request else os.path.join(request["root"], "sessions")]


def refresh(request, clock):
    from sessiontree.catalog import Catalog

    with Catalog() as catalog:
        with clock:
            report = catalog.refresh(agent_folders(request))
        sizes = [session.info.size for session in catalog.sessions()]
    return {"sessions": report.files, "bytes": sum(sizes)}


def listed_from_catalog(request, clock):
    from sessiontree.catalog import Catalog

    with Catalog() as catalog, clock:
        catalog.refresh(agent_folders(request))
        infos = [session.info for session in catalog.sessions()]
    if request.get("check") and shown(infos) != shown(fresh_infos(request)):
        raise ValueError("the catalog lists something else than the files")
    return {"sessions": len(infos), "messages": sum(info.message_count for info in infos)}


def shown(infos):
    """What a catalog keeps of what a listing shows."""
    return [(i.path, i.id, i.name, i.message_count, i.first_message[:4096], i.modified_ms) for i in infos]


def fresh_infos(request):
    from sessiontree import SessionManager

    return SessionManager.list_all(request.get("folder"))


def search(request, clock):
    from sessiontree.catalog import Catalog

    most = request.get("most")
    with Catalog() as catalog, clock:
        hits = catalog.search(request["query"], limit=most, every_copy=True)
    found = [(os.path.basename(hit.path), hit.entry_id) for hit in hits]
    answer = {"hits": len(found)}
    if not request.get("check"):
        return answer
    if most is None:
        return {**answer, "hash": digest(f"{file} {id}".encode() for file, id in sorted(set(found)))}
    # Which of many are best is a matter of taste; that they hold the words is not.
    words = re.compile("|".join(request["query"].split()), re.IGNORECASE)
    wanted = len(request["query"].split())
    holds = [
        len({word.lower() for word in words.findall(text_of(*place))}) == wanted for place in places(hits)
    ]
    return {**answer, "sound": all(holds)}


def places(hits):
    return [(hit.path, hit.entry_id) for hit in hits]


def text_of(path, id):
    """The line of an entry."""
    with open(path, encoding="utf-8") as file:
        return next(line for line in file if f'"id":"{id}"' in line)


def find(request, clock):
    SessionManager = loaded()  # noqa: N806
    with clock:
        path = SessionManager.find_by_id(request["cwd"], request["id"], request["folder"])
    return {"file": os.path.basename(path)}


def recent(request, clock):
    SessionManager = loaded()  # noqa: N806
    with clock:
        session = SessionManager.continue_recent(request["cwd"], request["folder"], cache=False)
    return {"file": os.path.basename(session.get_session_file()), "entries": session.get_entry_count()}


# ---- writing


def append(request, clock):
    session = loaded().create("/code/app", request["folder"])
    session.append_message(opening_message())
    messages = [message(n) for n in range(request["times"])]
    with clock:
        for one in messages:
            session.append_message(one)
    return digest_of_file(session.get_session_file(), "user")


def append_many(request, clock):
    session = loaded().create("/code/app", request["folder"])
    session.append_message(opening_message())
    messages = [message(n) for n in range(request["times"])]
    with clock:
        session.append_many(messages)
    return digest_of_file(session.get_session_file(), "user")


def append_to(request, clock):
    session = opened(request)
    before, messages = session.get_entry_count(), [message(n) for n in range(request["times"])]
    with clock:
        for one in messages:
            session.append_message(one)
    return {"more": session.get_entry_count() - before, "more_bytes": grown(request)}


def grown(request):
    return os.path.getsize(request["file"]) - request["bytes"]


def fork(request, clock):
    SessionManager = loaded()  # noqa: N806
    with clock:
        copy = SessionManager.fork_from(request["file"], "/code/other", request["folder"], cache=False)
    return {"leaf": copy.get_leaf_id(), **checked(request, digest_of_body, the_only_file(request["folder"]))}


def branched(request, clock):
    session = opened(request, session_dir=request["folder"])
    leaf = session.get_leaf_id()
    with clock:
        path = session.create_branched_session(leaf)
    return {"made": path is not None, **checked(request, digest_of_body, the_only_file(request["folder"]))}


def checked(request, look, path):
    """What takes long to find out is found out once."""
    return look(path) if request.get("check") else {}


def migrate(request, clock):
    loaded()
    with clock:
        session = opened(request)
    return {"entries": session.get_entry_count(), **checked(request, digest_of_file, request["file"])}


# ---- in a long session


def children(request, clock):
    session = opened(request)
    targets = middle(session, request["times"])
    with clock:
        found = [session.get_children(id) for id in targets]
    return {"digest": digest_of_messages(child for children in found for child in children)}


def middle(session, count):
    """The ids of entries in the middle of the file."""
    start = session.get_entry_count() // 2
    return [entry["id"] for entry in session.get_entries()[start : start + count]]


def label(request, clock):
    session = opened(request)
    targets = middle(session, request["times"])
    with clock:
        for number, id in enumerate(targets):
            session.append_label_change(id, f"label {number}")
            session.get_label(id)
    return {"labels": [session.get_label(id) for id in targets]}


def name(request, clock):
    session = opened(request)
    names = []
    with clock:
        for number in range(request["times"]):
            session.append_session_info(f"name {number}")
            names.append(session.get_session_name())
    return {"names": names}


def edit(request, clock):
    session = opened(request)
    targets = middle(session, request["times"])
    with clock:
        for id in targets:
            session.append_context_edit(id, {"content": "shorter"})
    return {"more_bytes": grown(request)}


def compaction(request, clock):
    session = opened(request)
    kept = [entry["id"] for entry in session.get_entries()[-request["times"] :]]
    with clock:
        for id in kept:
            session.append_compaction("what was done so far", id, 1000)
    return {"more_bytes": grown(request), "messages": len(session.build_session_context().messages)}


WORKS = {
    "import": importing,
    "open": open_session,
    "context": context,
    "path rows": path_rows,
    "path ids": path_ids,
    "path ids listed": path_ids_listed,
    "tree": tree,
    "list": listed,
    "list with progress": listed_with_progress,
    "refresh": refresh,
    "list from catalog": listed_from_catalog,
    "search": search,
    "first": first,
    "find": find,
    "recent": recent,
    "append": append,
    "append many": append_many,
    "append to": append_to,
    "fork": fork,
    "branched": branched,
    "migrate": migrate,
    "children": children,
    "label": label,
    "name": name,
    "edit": edit,
    "compaction": compaction,
}

if __name__ == "__main__":
    sys.exit(main(WORKS))
