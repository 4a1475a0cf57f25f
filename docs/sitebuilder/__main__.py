"""`scripts/site [FOLDER]`: build the site into FOLDER, `site` unless given."""

from __future__ import annotations

import sys
from pathlib import Path

from sitebuilder.links import broken
from sitebuilder.outline import ROOT
from sitebuilder.site import build


def main(argv: list[str]) -> int:
    """Build, then check the links; 1 when one leads nowhere."""
    folder = Path(argv[0]) if argv else ROOT / "site"
    made = build(folder)
    wrong = broken(folder)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    print(f"{len(made)} pages: {folder / 'index.html'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
