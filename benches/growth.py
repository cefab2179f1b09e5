"""How sessiontree's cost grows: with the size of a file, its entries, the number of sessions."""

import dataclasses

from generate import GROWTH, MB, SCALES
from measure import OURS, SkippedError
from works import Work

TINY = 200


@dataclasses.dataclass(frozen=True)
class Series:
    """Columns of the table: one work on ever larger data."""

    title: str
    letter: str
    columns: tuple


def file_columns(name):
    return {
        "open": Work(f"growth: open {name}", "open", (OURS,), name),
        "open, saved index": Work(f"growth: open {name}, saved index", "open", (OURS,), name, cached=True),
    }


def entry_columns(name):
    return {
        **file_columns(name),
        "path": Work(f"growth: path {name}", "path rows", (OURS,), name),
        "append": Work(f"growth: append {name}", "append to", (OURS,), name, TINY, "copy"),
        "children": Work(f"growth: children {name}", "children", (OURS,), name, TINY),
        "label": Work(f"growth: label {name}", "label", (OURS,), name, TINY, "copy"),
    }


def session_columns(name):
    def of(what, do, given):
        return Work(f"growth: {what} {name}", do, (OURS,), name, given=given)

    return {
        "list": of("list", "list", ("folder",)),
        "first session": of("first session of", "first", ("folder",)),
        "find by id": of("find in", "find", ("folder", "cwd", "id")),
        "continue": of("continue the newest of", "recent", ("folder", "cwd")),
    }


SERIES = (
    ("size of the file", "G", "", file_columns),
    ("entries", "E", "k", entry_columns),
    ("sessions", "N", "", session_columns),
)


def table(measurer, scale, skipped):
    """Measure and print; the rows, as in the other table. One size is on the disk at a time."""
    rows = []
    for title, letter, unit, columns in SERIES:
        print(f"\ngrowth with {title}", flush=True)
        for number in GROWTH[SCALES[scale]][letter]:
            name = f"{letter}{number}{unit}"
            try:
                cells, size = measured(measurer, columns(name), rows)
            except SkippedError as why:
                skipped.append(f"growth: {name}: {why}")
                print(f"  {number:>7,}{unit}: skipped: {why}", flush=True)
            else:
                print(f"  {number:>7,}{unit} ({size / MB:.4g} MB): " + ", ".join(cells), flush=True)
            finally:
                measurer.data.remove(name)
    return rows


def measured(measurer, works, rows):
    """The cells of one line, and the size of its files; the rows are added to ``rows``."""
    from compare import rows_of, span

    cells = []
    for column, work in works.items():
        results, facts = measurer.work(work)
        (row,) = rows_of(work, results, facts)
        rows.append(row)
        cells.append(f"{column} {span(row['seconds']) if row['seconds'] else row['error']}")
        if column == "open" and row["extra_mb"] is not None:
            cells.append(f"more memory {row['extra_mb']:.1f} MB")
    return cells, facts["bytes"]
