"""One recorded scenario put to sessiontree inside the test process."""

import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import adapter  # noqa: E402
from _mask import own_wording  # noqa: E402
from normalise import Kit  # noqa: E402

CASES = HERE / "cases"


def scenario(name):
    # json, not orjson: scenarios hold lone surrogates
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def ask(name, number=0):
    """Our result of one request of a scenario."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10000)  # results are nested up to 150 levels
    try:
        with warnings.catch_warnings(action="ignore"):  # what is shown here is the answer
            request = scenario(name)["requests"][number]
            return adapter.answer(Kit(str(CASES), own_wording()), request)
    finally:
        sys.setrecursionlimit(limit)


def source(name):
    """The raw lines of a scenario's session file, without the last line feed."""
    return (CASES / f"{name}.jsonl").read_bytes().removesuffix(b"\n").split(b"\n")


def text_of(result, name="session.jsonl"):
    return result["files"][name]["text"]


def rows(result, name="session.jsonl"):
    """A file of the session folder after the request, line by line."""
    return [json.loads(line) for line in text_of(result, name).splitlines() if line]


def oks(result):
    """What the steps returned."""
    return [step.get("ok") for step in result["steps"]]


def errors(result):
    """Names and messages of the steps' errors, None where there was none."""
    return [step.get("error") for step in result["steps"]]


def ids(entries):
    return [entry.get("id") if isinstance(entry, dict) else entry for entry in entries]


def nested(nodes):
    """A tree as {id: {child id: ...}}; ids that come twice would be lost, so it is a list of pairs."""
    return [(node["entry"]["id"], nested(node["children"])) for node in nodes]
