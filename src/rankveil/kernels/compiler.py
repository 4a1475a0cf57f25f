"""numba, without the settings that it would take from the folder in which a command is run.

Its file .numba_config.yaml could name a folder of compiled code, which numba unpickles: whoever hands over a folder of
data could put both there. Settings of the environment (NUMBA_CACHE_DIR) hold.
"""

from __future__ import annotations

import os

import numba
from numba.core import config

__all__ = ["numba"]

config._config_fname = os.devnull  # no regular file, so nothing is read; numba has no switch for it
config.reload_config()  # type: ignore[no-untyped-call]
