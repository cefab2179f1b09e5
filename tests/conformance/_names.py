"""Names and arguments on the way from pi's JavaScript to sessiontree's Python.

A request names pi's methods and gives positional arguments; here they become snake_case names, keywords
for option objects, and "left out" for JavaScript's undefined.
"""

import dataclasses
import importlib
import inspect
import re

import sessiontree
from normalise import UNDEFINED, JsError

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# pi's options object of newSession, create, inMemory and forkFrom: keywords in sessiontree.
OPTION_KEYS = {"id": "id", "parentSession": "parent_session"}


def snake(name):
    """``getLeafId`` -> ``get_leaf_id``."""
    return _HUMP.sub(lambda m: "_" + m[1].lower(), name)


def camel(name):
    """``first_kept_entry_id`` -> ``firstKeptEntryId``."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def public(name):
    """A public name of sessiontree, or an error that the result of the request shows."""
    missing = JsError(f"sessiontree has no {name!r}", "MissingName")
    value = getattr(sessiontree, name, missing)
    if value is missing:
        raise missing
    return value


def jsontext():
    """The module of JavaScript's JSON, dates and white space."""
    return importlib.import_module("sessiontree.jsontext")


def clean(value):
    """Drop undefined members, as JSON.stringify does; undefined in a list becomes None."""
    if isinstance(value, dict):
        if not any(v is UNDEFINED or isinstance(v, (dict, list)) for v in value.values()):
            return value
        return {k: clean(v) for k, v in value.items() if v is not UNDEFINED}
    if isinstance(value, list) and any(v is UNDEFINED or isinstance(v, dict) for v in value):
        return [None if v is UNDEFINED else clean(v) for v in value]
    return value


def options(value):
    """pi's ``{id, parentSession}`` as keywords."""
    if value is UNDEFINED or value is None:
        return {}
    return {OPTION_KEYS[k]: v for k, v in value.items() if v is not UNDEFINED}


def given(**keywords):
    """The keywords whose value is not undefined."""
    return {k: v for k, v in keywords.items() if v is not UNDEFINED}


def call(function, args, absent=()):
    """Call with positional arguments that may be undefined or missing, as in JavaScript.

    Left out is what is undefined where the parameter has a default; else it is None. Positions in
    ``absent`` are those where pi tells undefined from null: there the argument is left out all the same,
    and Python's refusal stands for pi's.
    """
    named = [p for p in inspect.signature(function).parameters.values() if p.kind in POSITIONAL]
    given_args = [clean(a) for a in args]
    given_args += [UNDEFINED] * (len(named) - len(given_args))
    positional, keywords = [], {}
    for position, (parameter, value) in enumerate(zip(named, given_args, strict=False)):
        if value is UNDEFINED and (parameter.default is not parameter.empty or position in absent):
            continue
        shown = None if value is UNDEFINED else value
        if keywords or len(positional) < position:
            keywords[parameter.name] = shown
        else:
            positional.append(shown)
    return function(*positional, **keywords)


def is_record(value):
    """A dataclass instance or a named tuple: one of sessiontree's result types."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
