"""Every recorded scenario of pi 1.6.0, put to sessiontree."""

import fnmatch
import json
import os
import shlex
import sys
from pathlib import Path

import compare
import pytest

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases"
BATCH = 40
TIMEOUT = 300


def load(path):
    # json, not orjson: scenarios hold lone surrogates
    return json.loads(path.read_text(encoding="utf-8"))


SCENARIOS = sorted(path.stem for path in CASES.glob("*.json"))
DEVIATIONS = {case for bug in load(HERE / "deviations.json") for case in bug["cases"]}
REASONS = load(HERE / "exceptions.json")
EXCEPTIONS = {one["case"]: one["reason"] for one in REASONS if not one.get("strict")}
STRICT_EXCEPTIONS = {one["case"]: one["reason"] for one in REASONS if one.get("strict")}


@pytest.fixture(scope="session")
def answers(request):
    """name -> results of sessiontree, from adapter processes that take several scenarios each."""
    wanted = sorted({item.callspec.params["name"] for item in request.session.items if is_scenario(item)})
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(HERE / 'adapter.py'))}"
    scenarios = [load(CASES / f"{name}.json") for name in wanted]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10000)  # results are nested up to 150 levels, and so is the comparison
    yield compare.run_all(command, os.fspath(CASES), scenarios, BATCH, TIMEOUT)
    sys.setrecursionlimit(limit)


def is_scenario(item):
    return getattr(item, "originalname", "").startswith("test_scenario")


def differences(name, results, *, strict=False):
    """``(request number, differences)`` of a scenario; a crash is a difference like any other."""
    for i, expected in enumerate(load(HERE / "expected" / f"{name}.json")["results"]):
        got = results[i] if i < len(results) else {compare.CRASH: "no result"}
        if unanswered(got):
            yield i, [("crash", "an answer", got)]
        else:
            yield i, compare.compare(expected, got, strict=strict)


def unanswered(got):
    """No result, a failure outside the recorded shape, or a name that the library does not have."""
    return compare.CRASH in got or "requestError" in got or '"MissingName"' in json.dumps(got)


def is_allowed(name, i, found):
    """Differences that are meant: pi's known faults, and what Python cannot express. Never a crash."""
    if any(path == "crash" for path, _theirs, _ours in found):
        return False
    return not {name, f"{name}#{i}"}.isdisjoint(DEVIATIONS | set(EXCEPTIONS))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name, answers):
    """sessiontree answers as pi does, but where it is better on purpose."""
    wrong = [
        (i, found)
        for i, found in differences(name, answers[name])
        if found and not is_allowed(name, i, found)
    ]
    assert not wrong, report(name, wrong)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_strictly(name, answers):
    """Key order, file text, and undefined against null are pi's as well, but where the list says why not."""
    wrong = [
        (i, found)
        for i, found in differences(name, answers[name], strict=True)
        if found and not is_allowed(name, i, found) and f"{name}#{i}" not in STRICT_EXCEPTIONS
    ]
    assert not wrong, report(name, wrong)


def report(name, wrong):
    lines = [f"{name}: {load(CASES / f'{name}.json').get('covers', '')}"]
    for i, found in wrong:
        for path, theirs, ours in found[:4]:
            lines.append(
                f"  request {i} {path}\n    pi : {json.dumps(theirs)[:300]}\n    got: {json.dumps(ours)[:300]}"
            )
    return "\n".join(lines)


def test_every_exception_is_still_needed(answers):
    """An exception whose request agrees by now must leave the list."""
    for case in EXCEPTIONS | STRICT_EXCEPTIONS:
        name, _, number = case.partition("#")
        if name in answers:
            found = dict(differences(name, answers[name], strict=case in STRICT_EXCEPTIONS))
            assert any(found[i] for i in found if not number or i == int(number)), case


def test_lists_name_scenarios_that_exist():
    """Deviations and exceptions name scenarios and requests that are there, each with its reason."""
    for case in DEVIATIONS | set(EXCEPTIONS) | set(STRICT_EXCEPTIONS):
        name, _, number = case.partition("#")
        assert fnmatch.filter(SCENARIOS, name), case
        assert int(number or 0) < len(load(CASES / f"{name}.json")["requests"]), case
    assert all(one["reason"] for one in REASONS)
