"""sessiontree beside pi, the best Python port and the floors, on the same files, with the same answers.

    .venv/bin/python benches/compare.py [--quick] [--only WORK] [--json PATH] [--growth]

Each measurement is a process of its own, the peers take turns, the files are in the page cache. Printed are
medians; the answers are compared too, and one of ours that differs makes the exit status 1. A second table (with
--growth, or if nothing is chosen by --only) shows how sessiontree's cost grows.

    --quick     files a tenth of the size, three runs: five minutes on two cores
    --smoke     files a hundredth of the size, one run: do the answers agree?
    --json      one object a line: work, peer, seconds, peak_mb, ratio_to_pi, correct, and more

docs/benchmarks.md says what each row means.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import growth
from generate import MB, Data
from measure import OURS, PI, Measurer, SkippedError, judge, machine
from works import works


def rows_of(work, results, facts):
    """One dict a peer, as it goes into the JSON file."""
    correct = judge(results, facts_for(work, facts))
    pi = results[PI].seconds if PI in results else None
    for peer, result in results.items():
        ratio = pi / result.seconds if pi and result.seconds and peer != PI else None
        yield {
            "work": work.name,
            "peer": peer,
            "seconds": result.seconds,
            "spread": result.spread,
            "peak_mb": result.megabytes("peak_mb"),
            "extra_mb": result.megabytes("extra_mb"),
            "ratio_to_pi": ratio,
            "correct": correct[peer],
            "runs": len(result.runs),
            "error": result.error,
        }


def facts_for(work, facts):
    """What the generator knows of the answer."""
    known = {key: facts[key] for key in ("bytes", "entries", "messages", "sessions", "leaf") if key in facts}
    if "newest" in facts:
        known["file"] = facts["newest"]
    if work.do == "search":
        return {}
    if work.do in ("find", "recent"):
        return {"file": facts["newest"]} if work.do == "recent" else {}
    if work.scratch == "grown":
        return {"entries": facts["entries"] + 1000, "leaf": f"feed{999:04x}"}
    if work.do in ("compaction", "context", "branched", "migrate"):
        known.pop("messages", None)
        known = known if work.do == "migrate" else {"bytes": facts.get("bytes")}
    if work.do == "fork":
        known["entries"] -= facts["labels"]
    return known


def span(seconds):
    """A time in a unit that fits it."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def line(row):
    """One line of the table."""
    if row["error"]:
        return f"  {row['peer']:17} {row['error']}"
    low, high = row["spread"]
    ratio = f"{row['ratio_to_pi']:.3g} x" if row["ratio_to_pi"] else ""
    answer = {True: "", False: "  ANOTHER ANSWER", None: "  (nothing to compare with)"}[row["correct"]]
    return (
        f"  {row['peer']:17} {span(row['seconds']):>9}  ({span(low)} to {span(high)})".ljust(54)
        + f"{row['peak_mb']:8.0f} MB {row['extra_mb']:8.1f} MB {ratio:>9}{answer}"
    )


def heading(work, facts):
    size = f" ({facts['bytes'] / MB:.4g} MB)" if "bytes" in facts else ""
    return f"{work.name}{size}".ljust(54) + "       peak        more   pi's/it"


def chosen(options):
    """Scale, runs and works by the command line."""
    scale = "smoke" if options.smoke else "quick" if options.quick else "full"
    all_works = works(scale)
    wanted = [w for w in all_works if not options.only or any(part in w.name for part in options.only)]
    runs = options.runs or {"smoke": 1, "quick": 3, "full": 5}[scale]
    return scale, runs, wanted


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--only", action="append", metavar="WORK", help="part of a work's name; repeatable")
    parser.add_argument("--json", type=Path, metavar="PATH")
    parser.add_argument("--runs", type=int, metavar="N")
    parser.add_argument("--growth", action="store_true", help="the second table only")
    options = parser.parse_args()
    scale, runs, wanted = chosen(options)
    if not wanted:
        parser.error("no work has such a name: " + ", ".join(w.name for w in works(scale)))
    data = Data(scale)
    if options.smoke:
        measurer = Measurer(data, runs)
        rows = [row for work in wanted for row in rows_of(work, *measurer.work(work))]
        print(f"{len(wanted)} works, {sum(row['correct'] is True for row in rows)} answers that agree")
        return report(rows)
    print(json.dumps(machine(), ensure_ascii=False), flush=True)
    start, skipped = time.monotonic(), []
    rows = [] if options.growth else table(Measurer(data, runs), wanted, skipped)
    if options.growth or not options.only:
        rows += growth.table(Measurer(data, runs), scale, skipped)
    print(f"\n{(time.monotonic() - start) / 60:.1f} minutes")
    print("".join(f"skipped: {text}\n" for text in skipped), end="")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return report(rows)


def table(measurer, wanted, skipped):
    """Measure and print; the rows. What there is no room for goes to ``skipped``."""
    rows = []
    for work in wanted:
        try:
            results, facts = measurer.work(work)
        except SkippedError as why:
            skipped.append(f"{work.name}: {why}")
            print(skipped[-1], flush=True)
            continue
        print(heading(work, facts), flush=True)
        for row in rows_of(work, results, facts):
            rows.append(row)
            print(line(row), flush=True)
    return rows


def report(rows):
    """Say what went wrong with whom; the exit status."""
    wrong = [f"{row['work']} by {row['peer']}" for row in rows if row["correct"] is False]
    ours = [row for row in rows if row["correct"] is False and row["peer"] == OURS]
    failed = [f"{row['work']} ({row['error']})" for row in rows if row["peer"] == OURS and row["error"]]
    for text, which in (("answers that differ", wrong), ("failures of ours", failed)):
        if which:
            print(f"{text}: {', '.join(which)}")
    return int(bool(failed or ours))


if __name__ == "__main__":
    sys.exit(main())
