"""Made-up material for session files: prose, source code, logs, other scripts, base64.

Everything derives from fixed seeds, so that the same cut is the same text on every machine. What matters
is not what the texts say but what they hold: about one escape in 25 characters in code and logs, quotes
and backslashes where real ones have them, and some text that is not ASCII.
"""

import base64
import functools
import random
import re

SIZE = 1_500_000
"""Characters of each kind; cuts start anywhere in them."""

NAMES = (
    "session index reader writer buffer offset parent branch leaf entry context message header folder "
    "worker queue token parser config cache lock retry limit event handler client server model summary "
    "cursor window batch report path line row column record stream chunk region target source label"
).split()
VERBS = (
    "reads writes keeps drops finds checks moves merges splits counts opens closes holds waits returns "
    "fails copies sorts walks builds parses locks marks skips appends"
).split()
LINKS = "the a each every this no when before after because unless while and or but then with without".split()
OTHER_WORDS = (
    "会话 文件 テスト 読み込み привет ошибка café naïve Größe señal — → ├── └── 🚀 ✅ 🔧 “quoted” ‘so’ "
    "error value return"
).split()


def prose(rng):
    """Markdown: paragraphs, lists, code spans, quotes."""

    def sentence():
        words = [rng.choice(rng.choice((NAMES, VERBS, LINKS))) for _ in range(rng.randrange(6, 18))]
        spot = rng.randrange(len(words))
        form = rng.random()
        if form < 0.15:
            words[spot] = f"`{words[spot]}_{rng.randrange(90)}()`"
        elif form < 0.25:
            words[spot] = f'"{words[spot]}"'
        return " ".join(words).capitalize() + rng.choice((".", ".", ".", ":", " — see below."))

    def block():
        form = rng.random()
        if form < 0.12:
            return f"## {sentence()}\n\n"
        if form < 0.35:
            return "".join(f"- {sentence()}\n" for _ in range(rng.randrange(2, 6))) + "\n"
        return " ".join(sentence() for _ in range(rng.randrange(1, 6))) + "\n\n"

    return block


def code(rng):
    """Functions with strings, comments and indentation by spaces or tabs."""

    def block():
        tab = rng.choice(("    ", "    ", "\t"))
        name, first, second = rng.sample(NAMES, 3)
        number = rng.randrange(1000)
        return (
            f"def {name}_{number}({first}: str, {second}: int = {number}) -> list[str]:\n"
            f'{tab}"""{rng.choice(VERBS).capitalize()} the {second} of a {first}."""\n'
            f"{tab}if not {first}.startswith('{second}-') or \"\\\\n\" in {first}:\n"
            f'{tab}{tab}raise ValueError(f"{name} \\"{{{first}}}\\" {rng.choice(VERBS)} no {second}")\n'
            f"{tab}for {name[0]}, part in enumerate({first}.split('\\t')):\n"
            f"{tab}{tab}{second} += len(part) * {rng.randrange(1, 64)}  # {rng.choice(LINKS)} {second}\n"
            f"{tab}return [{first}[{number % 7}:], str({second})]\n\n\n"
        )

    return block


def colours(rng):
    """The output of a test runner: control characters and check marks."""

    def block():
        return (
            f"\x1b[32m ✓\x1b[39m tests/{rng.choice(NAMES)}-{rng.randrange(400)}.test.ts "
            f"\x1b[2m({rng.randrange(1, 90)} tests)\x1b[22m {rng.randrange(3000)}ms\n"
            f'  File "/opt/app/lib/{rng.choice(NAMES)}_{rng.randrange(97)}.py", line {rng.randrange(900)}\n'
        )

    return block


def log(rng):
    """Server logs, folder listings, compiler messages, JSON in lines: plain ASCII."""

    def block():
        form, number = rng.randrange(5), rng.randrange(10**6)
        name, other = rng.sample(NAMES, 2)
        if form == 0:
            clock = f"{number % 24:02}:{number % 60:02}:{number % 59:02}.{number % 1000:03}"
            return f"2026-03-{1 + number % 28:02}T{clock}Z INFO [{name}-{number % 16}] /api/{other}/{number} 200\n"
        if form == 1:
            return f"C:\\Users\\dev\\app\\src\\{name}{number % 50}.ts({number % 900},{number % 80}): error TS2322: '{other}'\n"
        if form == 2:
            return f"-rw-r--r--  1 dev  staff  {number:7} Mar {1 + number % 28:2} {name}_{number % 999}.txt\n"
        if form == 3:
            return f'{{"id":{number},"name":"{name} {other}","tags":["a","b"],"ok":true,"score":{number % 997}}}\n'
        return f'src/{name}/mod{number % 60}.rs:{number % 1200}:    let {other} = map.get("{name}")?;\n'

    return block


def world(rng):
    """Other scripts, typographic signs, emoji."""

    def block():
        return " ".join(rng.choice(OTHER_WORDS) for _ in range(9)) + "\n"

    return block


KINDS = {"prose": prose, "code": code, "colours": colours, "log": log, "world": world}


@functools.cache
def pool(kind):
    """All the text of one kind."""
    block = KINDS[kind](random.Random(f"text {kind}"))
    parts, size = [], 0
    while size < SIZE:
        parts.append(block())
        size += len(parts[-1])
    return "".join(parts)[:SIZE]


def rare_word():
    """A number of the logs that stands in few texts: cuts that hold this place of the pool."""
    text = pool("log")
    return re.compile(r"/(\d+) 200\n").search(text, SIZE // 2)[1]


@functools.cache
def base64_pool(size):
    """Base64 text of at least so many characters: pictures, signatures."""
    return base64.b64encode(random.Random("base64").randbytes(size * 3 // 4 + 3)).decode()
