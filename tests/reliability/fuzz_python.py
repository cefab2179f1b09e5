"""Searches for bytes that the Python layer does not bear: ``python -m reliability.fuzz_python``.

Takes ``--seconds N`` and folders of a corpus; what is new goes into the first one. It needs atheris
(``pip install atheris``), which follows the lines that are reached as libFuzzer does.
"""

import argparse
import os
import sys
import tempfile
import time

try:
    import atheris
except ImportError:
    raise SystemExit("atheris is not installed here: nothing is searched") from None

with atheris.instrument_imports(include=["sessiontree"]):
    import sessiontree._livecontext
    import sessiontree.compaction
    import sessiontree.settings  # noqa: F401

    from .anything import check


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("corpus", nargs="*")
    given = parser.parse_args()
    os.environ["SESSIONTREE_CACHE"] = "off"
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        limits = [f"-max_total_time={given.seconds}", "-timeout=30", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *limits, *given.corpus], lambda data: check(data, folder))
        try:
            atheris.Fuzz()
        finally:
            print(f"{time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
