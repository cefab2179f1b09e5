"""``sessiontree name``: the name of a session."""

from __future__ import annotations

import click

from sessiontree.cli import _place
from sessiontree.cli._output import say, say_json
from sessiontree.cli._text import safe


@click.command("name", short_help="Show or set the name of a session.")
@click.argument("session", shell_complete=_place.complete_session)
@click.argument("name", nargs=-1)
@click.option("--clear", is_flag=True, help="Take the name away.")
@_place.place_options
@_place.json_option
def command(
    session: str, name: tuple[str, ...], clear: bool, cwd: str | None, session_dir: str | None, as_json: bool
) -> int:
    r"""Name SESSION; without NAME, print the name that it has.

    The name is one more entry of the session, as in pi; listings show it.

    \b
    Examples:
      sessiontree name 0198
      sessiontree name 0198 parser rewrite
      sessiontree name 0198 --clear

    Exit codes: 0 fine, 1 failed, or the session has no name; 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    given = " ".join(name)
    if clear and name:
        raise click.UsageError("--clear takes the name away: it goes with no NAME")
    if not clear and not name:
        return _show(place, session, as_json=as_json)
    if name and not given.strip():
        raise click.UsageError("the name is empty; --clear takes it away")
    with place.open_to_write(session) as opened:
        id = opened.append_session_info("" if clear else given)
        if as_json:
            say_json({"id": id, "name": opened.get_session_name()})
        else:
            say(id)
    return 0


def _show(place: _place.Place, session: str, *, as_json: bool) -> int:
    with place.open(session) as opened:
        name, path = opened.get_session_name(), opened.get_session_file()
    if as_json:
        say_json({"name": name})
    elif name is None:
        raise _place.NotFoundError(f"the session has no name ({path})")
    else:
        say(safe(name, keep=""))
    return 0 if name is not None else 1
