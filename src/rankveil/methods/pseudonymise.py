"""Pseudonyms: each value of an identifier becomes a code that only the secret can make again.

>>> import numpy as np
>>> from rankveil.categories import nominal
>>> from rankveil.seeds import Seed
>>> people = nominal(["ann", "bob"], np.array([2.0, 1.0]))
>>> made = pseudonymise(np.array([0.0, 1.0, 0.0]), length=6, categories=people, rng=Seed.of(1).stream("PERSON"))
>>> [made.levels[int(code)] for code in made.values]
['1c4674', 'ebfff8', '1c4674']
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import EVERY_KIND, Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.likelihood import Unrelated
from rankveil.seeds import Stream

_DIGITS = hashlib.sha256().digest_size * 2


@method(
    title="Pseudonyms",
    source="Krawczyk, Bellare and Canetti 1997 (HMAC)",
    kinds=EVERY_KIND,
    takes="labels",
    role="identifier",
    keyed=True,
    relabels=True,
    transparent="yes, all but the key, which is secret",
    seed_tells="the pseudonym of every value can be computed",
    tells="equal pseudonyms of a column are equal values of the original; nobody without the secret can tell which",
)
def pseudonymise(
    x: Array,
    *,
    length: Annotated[int, Range(4, _DIGITS), "how many hexadecimal digits a pseudonym has"] = 16,
    categories: Categories,
    rng: Stream,
) -> Outcome:
    """The first digits of HMAC-SHA256(key, value), the key drawn from the secret seed, another for each column.

    The seed's key is another for every release, so that nobody can link the pseudonyms of two. For those that stay the
    same over waves, give a key of their own (`--key-file F`): the same key, column name and value, the same pseudonym.

        y = first `length` hexadecimal digits of HMAC-SHA256(key, x)

    The same value has the same pseudonym, different values have different ones: where the first digits of two agree,
    all pseudonyms of the column are longer. They have no order but that of their digits. Who has the key, or the seed
    that it is drawn from, can compute the pseudonym of a value and so undo it.
    """
    key = rng.key()
    names = [hmac.new(key, label.encode("utf-8"), hashlib.sha256).hexdigest() for label in categories.labels]
    digits = length
    while len({name[:digits] for name in names}) < len(names) and digits < _DIGITS:
        digits += 1
    notes = ["pseudonyms can be undone with their key or the secret: who has it can compute that of every value"]
    if digits > length:
        notes.append(f"pseudonyms have {digits} digits, because {length} did not tell all values apart")
    # sorted: in the order of an ordered column's levels they would be as good as the levels themselves
    order = np.argsort(np.array(names, dtype=np.str_), kind="stable")
    code = np.empty(order.size)
    code[order] = np.arange(order.size)
    return Outcome(code[x.astype(np.intp)], notes=tuple(notes), levels=tuple(names[i][:digits] for i in order))


@pseudonymise.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Unrelated:
    """Without the key a pseudonym says nothing about the name behind it."""
    return Unrelated()
