"""Lossy compression: the table as a grey picture, through JPEG and back.

>>> rows = np.arange(16.0)
>>> made = lossy_compression(np.column_stack([rows, 1000 * rows]), quality=90).values
>>> bool(np.abs(made - np.column_stack([rows, 1000 * rows])).max() < 1000)
True
"""

from __future__ import annotations

import io
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.errors import ParameterError
from rankveil.execute import in_threads
from rankveil.likelihood import Recomputed

_BLOCK = 32_768
"""Rows of one picture; JPEG allows 65,500."""
_WIDEST = 65_500


@method(
    title="Lossy compression",
    source="Domingo-Ferrer and Torra 2001",
    works_on="columns",
    kinds=("numeric",),
    strength="quality",
    stronger="lower",
    tells="every column was rounded to 256 steps between its ends, and what distinguishes a value from the seven "
    "before or behind it in rows and in columns was rounded more, as JPEG does at that quality",
)
def lossy_compression(
    x: Array,
    *,
    quality: Annotated[int, Range(1, 100), "of the JPEG; the lower, the coarser"] = 50,
) -> Outcome:
    """Lossy compression: y = low + g' (high - low) / 255, g = round(255 (x - low) / (high - low)), g' = JPEG(g).

    Low and high are a column's least and largest value; rows and columns of the picture are those of the table, a
    constant column is left out of it and stays as it is. A picture holds 32,768 rows: tables with more are cut there,
    which changes nothing, because JPEG works on squares of 8 by 8 and 8 divides 32,768. JPEG draws nothing, and its
    arithmetic is in whole numbers: the same table and the same libjpeg give the same bytes on every machine, with any
    number of threads. The order of rows and columns matters: neighbours are blurred together.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    varied = np.flatnonzero(low < high)
    masked = x.copy(order="F")
    if varied.size == 0:
        return Outcome(masked, notes=("all columns are constant: they stay as they are",))
    if varied.size > _WIDEST:
        raise ParameterError(f"lossy_compression: a JPEG has at most {_WIDEST} columns; mask fewer at a time")
    # two ends that are farther apart than the largest number: their difference would not be one
    shrink = np.where(high / 2 - low / 2 > np.finfo(float).max / 2, 0.5, 1.0)
    least, span = low * shrink, high * shrink - low * shrink
    grey = np.empty((len(x), varied.size), dtype=np.uint8)
    for k, j in enumerate(varied):
        grey[:, k] = np.rint((x[:, j] * shrink[j] - least[j]) / span[j] * 255)
    blocks = [grey[start : start + _BLOCK] for start in range(0, len(x), _BLOCK)]
    blurred = np.concatenate(in_threads(lambda block: _through_jpeg(block, quality), blocks, size=grey.size))
    for k, j in enumerate(varied):
        # 256 values only: computing each once keeps the ends exact
        steps = np.clip((least[j] + np.arange(256) / 255 * span[j]) / shrink[j], low[j], high[j])
        steps[255] = high[j]
        masked[:, j] = steps[blurred[:, k]]
    note = "the scale reaches from the least to the largest original value: where a masked column reaches its end, "
    return Outcome(masked, notes=(note + "it shows that value",))


def _through_jpeg(grey: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    from PIL import Image
    from PIL.JpegImagePlugin import JpegImageFile

    file = io.BytesIO()
    Image.fromarray(grey).save(file, "JPEG", quality=quality)
    file.seek(0)
    # opened by its own class: Image.open would take a wide table for an attack with a huge picture
    with JpegImageFile(file) as picture:
        return np.asarray(picture)


@lossy_compression.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
