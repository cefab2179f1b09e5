"""sessiontree: see README.md."""
