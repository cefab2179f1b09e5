"""All kinds of random requests, each with the tags that say what is in it."""

from fuzz_calls import CallMaker


class Maker(CallMaker):
    """One stream of random requests; the same seed gives the same requests."""

    def request(self):
        """One random request with its tags."""
        self.tags = set()
        weights = {
            self.open_: 20,
            self.fork: 4,
            self.list: 4,
            self.compaction: 3,
            self.compacting: 4,
            self.summarizing: 2,
            self.load: 2,
            self.create: 2,
            self.cut: 2,
            self.branches: 2,
            self.on_messages: 2,
            self.on_entries: 3,
            self.on_usages: 1,
            self.json_texts: 1,
            self.dates: 1,
            self.settings_request: 1,
        }
        made = self.random.choices(list(weights), list(weights.values()))[0]()
        return {**made, "tags": sorted(self.tags)}
