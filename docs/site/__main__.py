"""Builds the site in build/site, or with ``--update`` rewrites the output of console blocks."""

import argparse
import sys
from pathlib import Path

from docs.site.build import ROOT, build
from docs.site.console import update


def main() -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="docs.site", description=__doc__)
    parser.add_argument("--update", action="store_true", help="rewrite output instead of building")
    parser.add_argument("--slow", action="store_true", help="also run pages that take minutes")
    parser.add_argument("pages", nargs="*", type=Path, help="pages to update (default all)")
    given = parser.parse_args()
    if given.update:
        update([page.resolve() for page in given.pages], slow=given.slow)
        return 0
    return build(ROOT / "build")


if __name__ == "__main__":
    sys.exit(main())
