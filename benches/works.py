"""What is compared: each work, who does it, with which file."""

import dataclasses

from measure import OURS, PI, PP
from texts import rare_word

LOOPS = ("json", "orjson", "msgspec")
LIMIT = "read only"


@dataclasses.dataclass(frozen=True)
class Work:
    """One row group of the table."""

    name: str
    do: str
    peers: tuple = (OURS, PI)
    data: str | None = None
    times: int = 0
    """How often it is done in one process; the time is that of once."""
    scratch: str | None = None
    """What each run gets: an empty "folder", a "copy" of the file, a copy that has "grown" by 1 MB."""
    cached: bool = False
    """Whether ours may use what it saved when the file was opened before."""
    how: dict = dataclasses.field(default_factory=dict)
    names: dict = dataclasses.field(default_factory=dict)
    """What a peer calls it, where that is not ``do``."""
    catalog: bool = False
    """Whether ours finds a catalog of the data, made when a work first asks for it."""
    given: tuple = ("file",)
    """What the request says about the data: "file", "folder", "root", "cwd", "id"."""

    def action(self, peer):
        return self.names.get(peer, self.do)

    def place(self, path, facts):
        values = {"file": path, "folder": path, "root": path, "cwd": facts.get("cwd"), "id": facts.get("id")}
        return {key: str(values[key]) for key in self.given}


def works(scale):
    """All works for files of a scale."""
    once = {"full": 10_000, "quick": 2000, "smoke": 200}[scale]
    few = {"full": 20, "quick": 20, "smoke": 3}[scale]
    everything = [
        *opening(),
        *contexts(),
        *paths(),
        *listings(),
        *appends(once),
        *copies(),
        *long_session(few),
    ]
    return [slim(work) for work in everything if work.name not in TWICE] if scale == "smoke" else everything


TWICE = (
    "open S, cold",
    "open XL, cold",
    "open XL, saved index",
    "open and whole context XL",
    "list D2, cold",
)
"""What a smoke test can leave out: a work like it is there."""


def slim(work):
    """A work with those peers alone whose answers tell most."""
    return dataclasses.replace(work, peers=tuple(p for p in work.peers if p in (OURS, PI, "orjson")))


def opening():
    for name in ("S", "M", "L", "XL", "Limg", "T200k"):
        port = (PP,) if name in "SM" else ()
        loops = LOOPS if name in ("L", "T200k") else ("orjson",)
        yield Work(f"open {name}, cold", "open", (OURS, PI, *port, *loops, LIMIT), name)
        if name not in "SLimg":
            yield Work(f"open {name}, saved index", "open", (OURS, PI), name, cached=True)
    yield Work("open XL, saved index, 1 MB more", "open", (OURS, PI), "XL", scratch="grown", cached=True)
    yield Work("import", "import")
    yield Work("import and first use", "import", how={"use": True})


def contexts():
    peers = (OURS, PI, *LOOPS, LIMIT)
    yield Work("open and context Lc, cold", "context", peers, "Lc")
    yield Work("open and context Lc, saved index", "context", (OURS, PI), "Lc", cached=True)
    yield Work("open and whole context L", "context", (*peers, "orjson, its lines"), "L")
    yield Work("open and whole context XL", "context", (OURS, PI, "orjson"), "XL")


def paths():
    pi = {PI: "path"}
    yield Work("path of T200k, rows", "path rows", (OURS, PI), "T200k", names=pi)
    yield Work("path of T200k, ids", "path ids", (OURS, PI, "orjson"), "T200k", names=pi)
    yield Work("path of T200k, list of ids", "path ids listed", (OURS, PI), "T200k", names=pi)
    yield Work("tree of T200k, every node", "tree", (OURS, PI), "T200k")


def listings():
    for name in ("D1", "D2", "D3"):
        where = ("root",) if name == "D1" else ("folder",)
        port = (PP,) if name == "D1" else ()
        peers = (OURS, PI, *port, *LOOPS, LIMIT, "stat only")
        yield Work(f"list {name}, cold", "list", peers, name, given=where)
    yield Work("list D3, with progress", "list with progress", (OURS, PI), "D3", given=("folder",))
    yield Work(
        "list D3 of its directory, with progress",
        "list with progress",
        (OURS, PI),
        "D3",
        given=("folder", "cwd"),
    )
    yield from catalogs()
    yield Work("first session of D1", "first", (OURS, PI), "D1", given=("root",))
    yield Work("find by id in D3", "find", (OURS, PI), "D3", given=("folder", "cwd", "id"))
    yield Work(
        "continue the newest of D3", "recent", (OURS, PI, PP, "stat only"), "D3", given=("folder", "cwd")
    )


def catalogs():
    """With a catalog in which nothing has to change."""
    floor = "stat only"
    for name, where in (("D1", "root"), ("D3", "folder")):
        how = {"data": name, "given": (where,), "catalog": True}
        names = {PI: "list", floor: "list"}
        yield Work(f"catalog of {name}, nothing changed", "refresh", (OURS, floor), names=names, **how)
        yield Work(f"list {name}, catalog", "list from catalog", (OURS, PI, floor), names=names, **how)
    for kind, query in (
        ("a rare word", {"query": rare_word()}),
        ("common words", {"query": "parser session", "most": 50}),
    ):
        peers = (OURS, "orjson")
        yield Work(f"search D1, {kind}", "search", peers, "D1", how=query, given=("root",), catalog=True)


def appends(times):
    yield Work("append", "append", (OURS, PI, PP, "orjson", "orjson, locked"), times=times, scratch="folder")
    yield Work(
        "append_many, each of 1,000",
        "append many",
        (OURS, PI, "orjson"),
        times=min(times, 1000),
        scratch="folder",
        names={PI: "append", "orjson": "append"},
    )
    for name in ("T100", "T200k"):
        yield Work(f"append to {name}", "append to", (OURS, PI), name, times=times, scratch="copy")


def copies():
    floors = ("orjson", "splice", "cp")
    yield Work("fork M", "fork", (OURS, PI, PP, *floors), "M", scratch="folder")
    yield Work("branched session of M", "branched", (OURS, PI), "M", scratch="folder")
    yield Work("migrate V1", "migrate", (OURS, PI, LIMIT), "V1", scratch="copy")


def long_session(times):
    """Calls whose cost must not depend on the length of the session."""
    peers = (OURS, PI)
    yield Work("children in T200k", "children", peers, "T200k", times)
    for do in ("label", "name", "edit", "compaction"):
        yield Work(f"{do} in T200k", do, peers, "T200k", times, scratch="copy")
