"""``python -m sessiontree``: the command line."""

import sys

from sessiontree.cli import main

if __name__ == "__main__":
    sys.exit(main())
