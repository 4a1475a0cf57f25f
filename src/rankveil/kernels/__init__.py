"""The compiled loops, and nothing else: arrays and draws in, arrays out, no randomness inside.

A kernel is written in plain Python. Small inputs run it as it is, so that a first try does not wait for a compiler;
large ones run its compiled form, kept on disk. Both give the same result, and a test holds that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

SMALL = 5_000
"""Below this many rows plain Python takes milliseconds, compiling takes a second."""


class Kernel:
    """A loop that compiles itself when its first argument is long enough."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.plain = function
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The compiled form: the GIL released, no fast-math, cached on disk."""
        from rankveil.kernels.compiler import numba

        made: Callable[..., Any] = numba.njit(cache=True, nogil=True)(self.plain)
        return made

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self.plain if len(first) < SMALL else self.compiled)(first, *rest)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Declare a kernel."""
    return Kernel(function)
