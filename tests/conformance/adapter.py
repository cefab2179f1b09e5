"""The candidate that compare.py runs: recorded requests in, results of sessiontree out.

    .venv/bin/python tests/conformance/adapter.py < requests.json > results.json

Reads ``{"base": folder of the cases, "requests": [...]}`` and prints one result per request in the shape
of the recorded results (README.md). It drives the public interface of sessiontree only; the one seam is
``Host``, which gives the clock and the ids of the recording.
"""

import contextlib
import json
import os
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import _call_ops
import _compaction_ops
import _session_ops
import _settings_ops
import _summary_ops
from _mask import own_wording
from _names import public
from normalise import JsError, Kit

HOSTLESS = frozenset(_call_ops.OPS.values())
OPS = {**_session_ops.OPS, **_call_ops.OPS, **_compaction_ops.OPS, **_settings_ops.OPS, **_summary_ops.OPS}


def host_of(run):
    """The recording's clock and ids."""
    return public("Host")(clock_ms=run.clock_ms, uuid4=run.uuid4, uuid7=run.session_id)


def answer(kit, request):
    """The result of one request; what fails outside the recorded shape is a ``requestError``."""
    with kit.start(request) as run:
        try:
            operation = OPS.get(request["op"])
            if operation is None:
                raise JsError(f"no operation {request['op']!r}", "MissingName")
            host = None if operation in HOSTLESS else host_of(run)
            return operation(run, request, host)
        except Exception as error:  # one request must not spoil the batch
            with contextlib.suppress(AttributeError):
                error.add_note(f"request: {request['op']}")
            return {"requestError": run.enc_error(error)}


def main():
    sys.setrecursionlimit(10000)
    warnings.simplefilter("ignore")
    # A recorded request may hold lone surrogates: json keeps them, orjson would not.
    asked = json.load(sys.stdin)
    kit = Kit(os.path.abspath(asked["base"]), own_wording())
    results = [answer(kit, request) for request in asked["requests"]]
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
