"""Random requests that ask a model, or lead up to it; the model's answers are planned, failures among them."""

from fuzz_sessions import SessionMaker

QUICK = {"enabled": True, "maxRetries": 2, "baseDelayMs": 1, "maxAgentDelayMs": 5}
# What providers say. Which of it is worth another try is a guess from the text, by pi and by us: these are
# the ones where there is nothing to guess.
ERRORS = [
    "boom",
    "529 overloaded_error: Overloaded",
    "429 Too Many Requests",
    "503 Service Unavailable",
    "rate limit reached",
    "fetch failed",
    "socket hang up",
    "terminated",
    "insufficient_quota: check your plan",
    "quota exceeded",
    "invalid x-api-key",
]


class ModelMaker(SessionMaker):
    """Requests on compaction and on summaries of branches."""

    def settings(self):
        return {
            "enabled": True,
            "reserveTokens": 1000,
            "keepRecentTokens": self.random.choice([0, 1, 5, 20, 100]),
        }

    # ---- what the model says
    def answer(self):
        kind = self.random.randrange(8)
        if kind < 3:
            return {"text": self.summary()}
        if kind == 3:
            error = {"errorMessage": self.random.choice(ERRORS)} if self.chance(0.9) else {}
            return {"stopReason": "error", **error}
        if kind == 4:
            self.tags.add("blank-summary")  # pi stores the part that an aborted answer has
            return {"stopReason": "aborted", "text": self.text()}
        if kind == 5:
            return {"stopReason": "length", "text": self.text()}
        if kind == 6:
            call = {"type": "toolCall", "id": "1", "name": "x", "arguments": {}}
            return {"content": [{"type": "text", "text": "T"}, call], "stopReason": "toolUse"}
        return {"content": [{"type": "text", "text": self.summary()}, {"type": "text", "text": "more"}]}

    def asking(self):
        """Planned answers and the options that a caller may give."""
        out = {"responses": [self.answer() for _ in range(self.random.randrange(1, 5))]}
        if self.chance(0.5):
            out["retry"] = {**QUICK, "enabled": self.chance(0.8)}
        if self.chance(0.3):
            out["customInstructions"] = self.text()
        if self.chance(0.2):
            out["apiKey"] = "k"
        if self.chance(0.2):
            out["headers"] = {"x": "1"}
        if self.chance(0.2):
            out["thinkingLevel"] = self.random.choice(["off", "low", "high"])
            out["model"] = {"reasoning": self.chance(0.5)}
        return out

    # ---- requests
    def compaction(self):
        file, _ = self.file()
        op = self.random.choice(["prepareCompaction", "projectedTokens"])
        return {"op": op, "file": file, "settings": self.settings()}

    def compacting(self):
        file, _ = self.file()
        return {"op": "compact", "file": file, "settings": self.settings(), **self.asking()}

    def summarizing(self):
        messages = [self.message(1704067200000 + n) for n in range(self.random.randrange(6))]
        out = {"op": "generateSummary", "messages": messages, **self.asking(), "textOnly": self.chance(0.3)}
        if self.chance(0.4):
            out["previousSummary"] = self.summary()
        return out

    def cut(self):
        return {"op": "findCutPoint", "file": self.file()[0], "keepRecentTokens": [0, 1, 5, 20, 100]}

    def branches(self):
        file, ids = self.file()
        pair = [self.random.choice([*ids, None]) for _ in range(2)]
        if self.chance(0.4):
            return {"op": "prepareBranchEntries", "file": file, "tokenBudgets": [0, 10, 50]}
        if pair[1] is None or self.chance(0.5):
            return self.branch_summary(file)
        return {
            "op": "collectEntriesForBranchSummary",
            "file": file,
            "oldLeafId": pair[0],
            "targetId": pair[1],
        }

    def branch_summary(self, file):
        asking = self.asking()
        options = {"reserveTokens": self.random.choice([0, 1000, 99_990, 200_000])}
        if options["reserveTokens"] >= 100_000:
            self.tags.add("no-budget")
        for name in ("retry", "customInstructions", "apiKey", "headers"):
            if name in asking:
                options[name] = asking[name]
        if self.chance(0.3):
            options["replaceInstructions"] = True
        responses = asking["responses"]
        return {"op": "generateBranchSummary", "file": file, "options": options, "responses": responses}
