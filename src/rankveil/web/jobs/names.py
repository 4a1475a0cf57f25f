"""What the files of a masking are called."""

from __future__ import annotations

from rankveil.errors import FormatError
from rankveil.files import registry
from rankveil.web import repeat
from rankveil.web.sources import Source


def masked_ending(source: Source) -> str:
    """The format of a release: that of the original, or CSV where that cannot be written."""
    try:
        registry.writer(source.file)
    except FormatError:
        return ".csv"
    return source.ending


def names_of(source: Source) -> repeat.Names:
    """What the files of a masking are called when they are downloaded."""
    masked = f"{source.stem}-masked{masked_ending(source)}"
    return repeat.Names(source.name, masked, f"{source.stem}-plan.toml", f"{masked}.secret.json")
