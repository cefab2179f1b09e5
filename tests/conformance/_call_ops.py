"""Requests on free functions and constants, and on the meaning of JSON, dates and white space."""

import hashlib

from _encode import plain
from _names import call, clean, jsontext, public, snake
from _session_ops import attempt
from normalise import UNDEFINED, Map, Set, js_len, utf8

LONG = 20000
# pi's functions whose first list argument may come with an index by id, which sessiontree builds itself.
INDEXED = frozenset(["buildContextEntries", "buildSessionProjection", "buildSessionContext"])
# pi's functions whose "nothing" is null; that of the others is undefined.
NULLING = frozenset(["getLatestCompactionEntry", "findMostRecentSession"])


def file_ops(value):
    """pi's ``{read, written, edited}`` of sets as sessiontree's FileOps."""
    ops = public("create_file_ops")()
    for name in ("read", "written", "edited"):
        for path in value[name].values:
            getattr(ops, name).add(path)
    return ops


def argument(value):
    """An argument in sessiontree's types."""
    if isinstance(value, dict) and isinstance(value.get("read"), Set):
        return file_ops(value)
    if isinstance(value, Map):
        return dict(value.pairs)
    return clean(value)


def constant(name):
    return plain(public(name))


def migrated(run, request):
    """pi changes the entries of its argument; ours are returned."""
    host = public("Host")(clock_ms=run.clock_ms, uuid4=run.uuid4, uuid7=run.session_id)
    entries = argument(run.dec(request["args"][0]))
    out = attempt(run, lambda: public("migrate_session_entries")(entries, host=host))
    if "error" in out:
        return out
    return {"ok": {"$undefined": True}, "args": [out["ok"]]}


def call_(run, request, _host):
    name = request["fn"]
    if name == "migrateSessionEntries":
        return migrated(run, request)
    if name.isupper():
        return attempt(run, lambda: constant(name))
    args = [argument(run.dec(a)) for a in request.get("args") or []]
    if name in INDEXED:
        args = args[:2]

    def result():
        value = call(public(snake(name)), args)
        return UNDEFINED if value is None and name not in NULLING else plain(value)

    out = attempt(run, result)
    if request.get("showArgs"):
        out["args"] = run.enc([plain(a) for a in args])
    return out


# ---- JSON, dates, blanks
def json_facts(run, text):
    """What reading makes of a text, and how it is written back."""
    try:
        value = jsontext().loads(text)
    except (ValueError, RecursionError):
        return {"accepts": False, "error": "SyntaxError"}
    out = {"accepts": True, "value": run.enc(value)}
    try:
        back = jsontext().js_stringify(value)
    except (ValueError, TypeError, RecursionError):
        out["writeError"] = "RangeError"
        return out
    long = {"len": js_len(back), "sha256": hashlib.sha256(utf8(back)).hexdigest()}
    out["written"] = long if js_len(back) > LONG else back
    return out


def json_(run, request, _host):
    texts = [
        t if isinstance(t, str) else run.bytes_of(t).decode("utf-8", "replace") for t in request["texts"]
    ]
    return {"results": [json_facts(run, text) for text in texts]}


def stringify(run, request, _host):
    return {
        "results": [
            attempt(run, lambda v=v: jsontext().js_stringify(clean(run.dec(v)))) for v in request["values"]
        ]
    }


def trim_blank(_run, _request, _host):
    trim = jsontext().trim
    return {"ok": [code for code in range(0x10000) if trim(chr(code)) == ""]}


def dates(run, request, _host):
    parse = jsontext().parse_date
    results = [{"text": text, "ms": run.enc(parse(run.dec(text)))} for text in request["texts"]]
    return {"results": results}


OPS = {"call": call_, "json": json_, "stringify": stringify, "trimBlank": trim_blank, "dates": dates}
