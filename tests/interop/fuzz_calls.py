"""Random requests on functions without a session: messages, entries, settings, JSON and dates."""

import json

from fuzz_models import ModelMaker

JSON_PIECES = [
    "{", "}", "[", "]", ",", ":", '"', '"a"', '"\\u00e9"', '"\\ud83d"', '"\\udE00"', "\\", "null", "true", "false",
    "0", "-", "1.0", "1e400", "-0", "12345678901234567890", "0.1e-7", "1E21", " ", "\t", "\n", "\x0b", "\u00a0",
    "\ufeff", "NaN", "Infinity", '"\x7f"', '"\x1f"', '"2"', '"10"',
]  # fmt: skip
DATE_PIECES = [
    "2024", "-", "01", "31", "T", " ", "00:00", ":30", ".123", "Z", "+02:00", "GMT", "Jan", "Mon", ",", "/", "12",
    "+012024", "PM", "(x)", "1", "99",
]  # fmt: skip
SETTING_VALUES = [
    0,
    1,
    16384,
    -1,
    1.5,
    "5",
    None,
    True,
    False,
    [],
    {},
    9007199254740991,
    9007199254740992,
    "x",
]
MESSAGE_FUNCTIONS = ["convertToLlm", "serializeConversation", "estimateContextTokens", "estimateTokens"]


class CallMaker(ModelMaker):
    """Requests whose arguments are values and not files."""

    def messages(self):
        return [self.message(1704067200000 + n) for n in range(self.random.randrange(6))]

    def entries(self):
        ids, out = [], []
        for number in range(self.random.randrange(12)):
            out.append(self.entry(number, ids, hostile=False))
            ids.append(f"n{number:02d}")
        return out, ids

    def on_messages(self):
        return {"op": self.random.choice(MESSAGE_FUNCTIONS), "messages": self.messages()}

    def on_entries(self):
        """A free function on a list of entries."""
        entries, ids = self.entries()
        leaf = [self.random.choice([*ids, None])] if ids and self.chance(0.7) else []
        name = self.random.choice(
            [
                "buildContextEntries",
                "buildSessionContext",
                "buildSessionProjection",
                "getLatestCompactionEntry",
                "getLastAssistantUsage",
                "sessionEntryToContextMessages",
                "projectContextEntry",
            ]
        )
        if name in ("sessionEntryToContextMessages", "projectContextEntry"):
            args = [self.entry(0, [], hostile=False)]
            if name == "projectContextEntry" and self.chance(0.7):
                args.append({"replacement": self.replacement()})
        else:
            args = [entries, *leaf] if name.startswith("build") else [entries]
        return {"op": "call", "fn": name, "args": args}

    def on_usages(self):
        return {"op": "call", "fn": "combineUsage", "args": [self.usage(), self.usage()]}

    def json_texts(self):
        """Texts that JSON.parse may or may not accept, and what it makes of them."""
        texts = []
        for _ in range(20):
            if self.chance(0.5):
                text = "".join(self.random.choice(JSON_PIECES) for _ in range(self.random.randrange(1, 7)))
            else:
                text = json.dumps(self.value(), ensure_ascii=self.chance(0.5))
                at = self.random.randrange(len(text) + 1)
                text = (
                    text[:at] + self.random.choice(["", *JSON_PIECES]) + text[at + self.random.randrange(2) :]
                )
            texts.append(text)
        return {"op": "json", "texts": texts}

    def dates(self):
        def text():
            return "".join(self.random.choice(DATE_PIECES) for _ in range(self.random.randrange(1, 8)))

        return {"op": "dates", "texts": [text() for _ in range(20)]}

    # ---- settings
    def compaction_settings(self):
        names = ["reserveTokens", "keepRecentTokens"]
        out = {n: self.random.choice(SETTING_VALUES) for n in names if self.chance(0.4)}
        if self.chance(0.4):
            out["enabled"] = self.random.choice([True, False, None])
        if self.chance(0.4):
            numbers = {n: self.random.choice(SETTING_VALUES) for n in names if self.chance(0.5)}
            out["modelOverrides"] = {self.random.choice(["p/m", "q/m"]): numbers}
        return out

    def layer(self):
        out = {"theme": "dark", "list": [1, 2]}
        if self.chance(0.7):
            out["compaction"] = self.compaction_settings()
        if self.chance(0.3):
            out["branchSummary"] = {"reserveTokens": self.random.choice([0, 5, 16384])}
        if self.chance(0.3):
            out[self.random.choice(["queueMode", "websockets", "x"])] = self.random.choice(
                ["all", True, False]
            )
        return {"text": json.dumps(out)}

    def settings_request(self):
        model = {"provider": "p", "id": "m"}
        calls = [
            {"fn": "getCompactionEnabled"},
            {"fn": "getCompactionSettings"},
            {"fn": "getCompactionSettings", "args": [model]},
            {"fn": "getBranchSummarySettings"},
            {"fn": "getGlobalSettings"},
            {"fn": "getProjectSettings"},
        ]
        out = {"op": "settings", "global": self.layer(), "calls": calls}
        if self.chance(0.5):
            out["project"] = self.layer()
            out["projectTrusted"] = self.chance(0.7)
        return out
