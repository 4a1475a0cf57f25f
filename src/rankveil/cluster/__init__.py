"""Work on many processes or machines: the tasks of `rankveil.partitions`, run by Dask.

What large tables are made of never travels through the scheduler: tasks read the tables' own files and leave what they
make in a scratch folder that all workers see. Only the names of tasks and small results travel.

- `addresses`: what `local`, `local:4` and `tcp://host:8786` mean;
- `engine`: functions on lists of items, wherever they run, by `sending`; `local` and `worker` are the processes of
  this machine, `reaching` finds those elsewhere, `own` is the engine's folder in the scratch folder;
- `work`: the folder of one job, with a journal by which it can be resumed;
- `tables`, `audits`, `attacks`: Parquet tables compared by the measures, or attacked;
- `masks`, `folders`: Parquet tables masked, and the folder of the release.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine


def open(address: str, *, memory: str | int | None = None, scratch: str | os.PathLike[str] | None = None) -> Engine:
    """Workers to do a job: `local` or `local:N` for processes of this machine, or the address of a Dask scheduler.

    `memory` is what all local workers together may use, as in "3GiB"; `scratch` a folder for files that are needed
    meanwhile, which all workers must see (local ones: the system's temporary folder unless given).
    """
    from rankveil.cluster.engine import Engine

    return Engine(address, memory=memory, scratch=scratch)
