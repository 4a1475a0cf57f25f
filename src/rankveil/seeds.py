"""One secret seed, from which every step, column and replicate draws its own named stream.

A stream is AES-128 in counter mode: its key is HMAC-SHA256 of the stream's name under the seed, and the
counter is (which call, which row). So a draw depends on nothing but the seed, the name and the absolute row -
not on order, workers or chunks - and, unlike Mersenne Twister or PCG, the generator cannot be recovered from
its output: everything but the seed may be published.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError

Array = NDArray[np.float64]

SAFE_BITS = 128
_FRESH_BYTES = 32
_LONGEST = 2**32
_KEY_BYTES = 16


class Seed:
    """The one secret of a run; it never shows itself in a repr, a log or an error.

    >>> Seed.of(7).stream("noise", "INCOME").random(2) == Seed.of(7).stream("noise", "INCOME").random(2)
    array([ True,  True])
    >>> Seed.fresh()
    Seed(hidden)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        self._secret = bytes(secret)

    @classmethod
    def fresh(cls) -> Seed:
        """A seed of 256 bits from the operating system."""
        return cls(secrets.token_bytes(_FRESH_BYTES))

    @classmethod
    def of(cls, value: Seed | int | str | bytes | None) -> Seed:
        """A given seed: a hexadecimal text, bytes, or a small whole number for studies; None draws a fresh one."""
        if value is None:
            return cls.fresh()
        if isinstance(value, Seed):
            return value
        if isinstance(value, bytes):
            return cls._checked(value)
        if isinstance(value, str):
            return cls._from_hex(value)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise ParameterError("a seed is a hexadecimal text, bytes, or a whole number of 0 or more")
        number = int(value)
        return cls(number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big"))

    @classmethod
    def _from_hex(cls, text: str) -> Seed:
        digits = text.strip().removeprefix("0x").replace(" ", "")
        try:
            return cls._checked(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits))
        except ValueError:
            raise ParameterError("the seed is not a hexadecimal number (digits 0-9 and a-f)") from None

    @classmethod
    def _checked(cls, secret: bytes) -> Seed:
        if not secret:
            raise ParameterError("the seed is empty; leave it out to draw one from the operating system")
        return cls(secret)

    @property
    def bits(self) -> int:
        """The length of the secret in bits (a release needs 128)."""
        return 8 * len(self._secret)

    def reveal(self) -> str:
        """The seed in hexadecimal, for the secret file and nothing else."""
        return self._secret.hex()

    def stream(self, *name: str | int) -> Stream:
        """The stream of that name: names differ, streams are independent."""
        message = b"".join(
            len(part).to_bytes(4, "big") + part
            for part in (f"{type(piece).__name__}:{piece}".encode() for piece in name)
        )
        # hashed first: HMAC pads a short key with zeros, which would make 1 and 256 the same seed
        secret = hashlib.sha256(self._secret).digest()
        key = hmac.new(secret, b"rankveil/stream/1" + message, hashlib.sha256).digest()[:_KEY_BYTES]
        return Stream(int.from_bytes(key, "little"))

    def derived(self, purpose: str, content: bytes) -> Seed:
        """Another seed of 256 bits, which says nothing of this one: HMAC-SHA256 of some content for one purpose.

        >>> Seed.of(7).derived("a", b"x").reveal() == Seed.of(7).derived("a", b"y").reveal()
        False
        """
        secret = hashlib.sha256(self._secret).digest()
        message = b"rankveil/seed/1\0" + purpose.encode() + b"\0" + content
        return Seed(hmac.new(secret, message, hashlib.sha256).digest())

    def __repr__(self) -> str:
        return "Seed(hidden)"

    def __reduce__(self) -> Any:  # tasks on other processes need it; it travels, it is not shown
        return (type(self), (self._secret,))


class CommonSeed(Seed):
    """A seed of comparisons and previews: whatever is masked gets the same draws. A release must never come from one.

    >>> CommonSeed.of(7).derived("a", b"x").reveal()
    '07'
    """

    __slots__ = ()

    def derived(self, purpose: str, content: bytes) -> Seed:
        """The seed itself."""
        return self


class Stream:
    """Draws for the rows of a table: call c, row i always gives the same draw.

    `rows` picks the rows that are present: the draws of the others are made and left out, so that a missing
    cell does not shift its neighbours. `start` is the absolute row of the first one.
    """

    __slots__ = ("_calls", "_key", "_rows", "_start")

    def __init__(self, key: int, *, rows: NDArray[np.intp] | None = None, start: int = 0) -> None:
        self._key = key
        self._rows = rows
        self._start = start
        self._calls = 0

    def at(self, rows: NDArray[np.intp] | None = None, *, start: int = 0) -> Stream:
        """The same stream seen from some rows of the table."""
        return Stream(self._key, rows=rows, start=start)

    def bits(self, size: int) -> NDArray[np.uint64]:
        """One word of 64 random bits per row."""
        from randomgen import AESCounter

        rows = self._rows
        if rows is not None and rows.size != size:
            raise ValueError("a stream at chosen rows draws exactly one value for each of them")
        need = size if rows is None else (int(rows.max()) + 1 if size else 0)
        block, skip = divmod(self._start, 2)  # a block of AES holds two words
        source = AESCounter(key=self._key, counter=(self._calls << 64) + block)
        self._calls += 1
        words: NDArray[np.uint64] = np.asarray(source.random_raw(need + skip), dtype=np.uint64).reshape(-1)[skip:]
        return words if rows is None else words[rows]

    def loose(self, size: int) -> Array:
        """Uniform draws that belong to the whole column, not to its rows."""
        whole = self.at()
        whole._calls, self._calls = self._calls, self._calls + 1
        return whole.random(size)

    def loose_pieces(self, size: int, at_a_time: int) -> Iterator[Array]:
        """The same draws as `loose`, some at a time."""
        whole = self.at()
        calls, self._calls = self._calls, self._calls + 1
        for start in range(0, size, at_a_time):
            piece = whole.at(start=start)
            piece._calls = calls
            yield piece.random(min(at_a_time, size - start))

    def random(self, size: int) -> Array:
        """Uniform on the open interval (0, 1)."""
        # 52 bits and a half, not 53: the largest 53-bit value plus a half rounds to 1 exactly
        bits = self.bits(size)
        bits >>= np.uint64(12)
        draws = bits.astype(np.float64)
        draws += 0.5
        draws *= 2.0**-52
        return draws

    def normal(self, size: int) -> Array:
        """Standard normal, by inversion: one word a value, so that rows stay addressable."""
        from scipy.special import ndtri

        draws: Array = ndtri(self.random(size))
        return draws

    def integers(self, size: int, *, below: int) -> NDArray[np.int64]:
        """Uniform on 0 .. below - 1, to a part in a million (a draw has 52 bits)."""
        if not 0 < below <= _LONGEST:
            raise ValueError("below must be between 1 and 2**32")
        drawn = (self.random(size) * below).astype(np.int64)
        return np.minimum(drawn, below - 1)

    def key(self) -> bytes:
        """A secret key of 32 bytes that belongs to the whole column."""
        whole = self.at()
        whole._calls, self._calls = self._calls, self._calls + 1
        return whole.bits(4).tobytes()

    def order(self, size: int) -> NDArray[np.intp]:
        """A random permutation of 0 .. size - 1."""
        return np.argsort(self.bits(size), kind="stable")

    def reveal(self) -> str:
        """The stream's own key in hexadecimal, for the secret file and nothing else."""
        return self._key.to_bytes(_KEY_BYTES, "little").hex()

    @classmethod
    def revealed(cls, text: str) -> Stream:
        """The stream of a key that `reveal` wrote; a ValueError for another text."""
        key = bytes.fromhex(text)
        if len(key) != _KEY_BYTES:
            raise ValueError
        return cls(int.from_bytes(key, "little"))

    def __repr__(self) -> str:
        return "Stream(hidden)"
