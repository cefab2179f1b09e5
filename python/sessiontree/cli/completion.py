"""``sessiontree completion``: what lets a shell complete commands, options and sessions."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sessiontree.cli._output import say, say_json
from sessiontree.cli._place import json_option

VARIABLE = "_SESSIONTREE_COMPLETE"


@click.command("completion", short_help="Print what lets a shell complete commands and sessions.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    r"""Print the script that lets SHELL complete commands, options and sessions.

    \b
    Examples:
      eval "$(sessiontree completion bash)"                # in ~/.bashrc (bash 4.4 or newer)
      eval "$(sessiontree completion zsh)"                 # in ~/.zshrc, after compinit
      sessiontree completion fish > ~/.config/fish/completions/sessiontree.fish

    Exit codes: 0 fine, 2 wrong usage.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"no completion for {shell!r}")
    completion = found(ctx.find_root().command, {}, "sessiontree", VARIABLE)
    # `source` would look at the version of a bash that may not be the one that is meant.
    script = (completion.source_template % completion.source_vars()).strip()
    if as_json:
        say_json({"shell": shell, "script": script})
    else:
        say(script)
