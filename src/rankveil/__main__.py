"""`python -m rankveil` is the command `rankveil`."""

from __future__ import annotations

import sys

from rankveil.cli import main

if __name__ == "__main__":
    sys.exit(main())
