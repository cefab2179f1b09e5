"""What the README shows must work as it stands there."""

import re
import shlex
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text("utf-8")


def test_quick_start_runs(tmp_path, monkeypatch, capsys):
    """The Python of the quick start runs in an empty folder and prints what it says."""
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    context, facts = capsys.readouterr().out.splitlines()
    assert context == "['Why is the last row missing?', 'And the \\\\r?', 'Try it another way.']"
    assert facts == "4 before the refactor 1"


def test_every_make_target_exists():
    """Each `make X` of the documents is a target."""
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        named = set(
            re.findall(r"(?:`|^ {4})make ([a-z]+)", (REPOSITORY / name).read_text("utf-8"), re.MULTILINE)
        )
        assert named <= targets, name


def test_every_command_is_shown():
    """Each command of the README is one of the program, and the README leaves none out but the demo."""
    from sessiontree.cli._app import COMMANDS

    named = set(re.findall(r"^ {4}(?:eval \"\$\()?sessiontree ([a-z]+)", README, re.MULTILINE))
    assert named == set(COMMANDS) - {"demo"}


def test_commands_of_the_documents_can_be_typed():
    """Each line of docs/commands.md and of the README is a command with options that it has."""
    import click
    from sessiontree.cli._app import sessiontree

    text = (REPOSITORY / "docs" / "commands.md").read_text("utf-8")
    lines = re.findall(r"^(?:eval \"\$\()?sessiontree ([^#\n)>]+)", text, re.MULTILINE)
    lines += re.findall(r"^ {4}(?:eval \"\$\()?sessiontree ([^#\n)]+)", README, re.MULTILINE)
    assert len(lines) > 50
    for line in lines:
        words = shlex.split(line)
        context = click.Context(sessiontree)
        command = sessiontree
        while isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
            assert command is not None, line
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= known, line


def test_links_lead_somewhere():
    """Each file that the README links to exists."""
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (REPOSITORY / target).exists(), target
