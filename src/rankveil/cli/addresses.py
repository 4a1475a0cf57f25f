"""Addresses of tables on the command line: what of them may be told, and where none can stand.

An address may hold a password, so no error, report or document repeats one as it was typed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from rankveil.errors import FileError

_SCHEME = r"[A-Za-z0-9+]+://"
_IN_SENTENCE = re.compile(rf"{_SCHEME}\S*[^\s.,:;()'\"]")  # what ends the sentence is no part of the address
_IN_WORD = re.compile(rf"{_SCHEME}(?:(?!{_SCHEME}).)+", re.DOTALL)
_HARMLESS = re.compile(
    rf"{_SCHEME}[\w.-]+(?::\d+)?/?|(?:s3a?|gs|gcs|abfss?|az|adl|hdfs|file|local|memory)://[^@?#:]*(?:@[^@?#:]*)?"
)
"""A place in a network and nothing else, such as that of a cluster, or one of files without a word that is secret."""


def hidden(sentence: str) -> str:
    """A sentence in which every address is as it may be shown.

    >>> hidden("there is no method 'postgresql://me:word@host/db?table=t'; use one of duckdb://, sqlite://")
    "there is no method 'postgresql://me:***@host/db?table=t'; use one of duckdb://, sqlite://"
    >>> hidden("s3://bucket/table: cannot be read, nor ftp://me:word@host/table")
    's3://bucket/table: cannot be read, nor ftp://...'
    """
    return _shown(_IN_SENTENCE, sentence)


def hidden_word(word: str) -> str:
    """A word of a command in which an address, also one with blanks, is as it may be shown.

    >>> hidden_word("--links=postgresql://me:my word@host/db?table=t")
    '--links=postgresql://me:***@host/db?table=t'
    """
    return _shown(_IN_WORD, word)


def command(argv: Sequence[str]) -> str:
    """The command as people can read and repeat it.

    >>> command(["audit", "postgresql://me:word@host/db?table=t", "m.csv"])
    "rankveil audit 'postgresql://me:***@host/db?table=t' m.csv"
    """
    return shlex.join(["rankveil", *map(hidden_word, argv)])


def refuse_address(path: str, what: str, *, wanted: str = "file") -> None:
    """Fail when the path of something that no database holds is an address."""
    from rankveil.files.databases import is_address, shown

    if is_address(path):
        raise FileError(f"{shown(path)}: the {what} cannot be an address; give the name of a {wanted}")


def _shown(pattern: re.Pattern[str], text: str) -> str:
    if "://" not in text:
        return text
    from rankveil.files import shown

    return pattern.sub(lambda found: found[0] if _HARMLESS.fullmatch(found[0]) else shown(found[0]), text)
