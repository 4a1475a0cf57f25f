"""Sentences of rankveil in the words of its pages: where one names an option of the command, a page has a control."""

from __future__ import annotations

import re

_MISSING = "under “What stands for a missing cell” on the Data page"

CONTROLS = (
    (
        r"say that it is none \(--role .+?=confidential\), or release it with --release-identifier .+",
        "or say that it is none (“role” on the Data page)",
    ),
    (r"\(--release-identifier NAME lets one through\)", "(another “role” on the Data page lets one through)"),
    (r" with --use uses\.toml", " in Python (use=)"),
    (r"\(--hierarchy\)", "(“hierarchy” on the Data page)"),
    (r"needs a value, as in --at \S+", "needs a value"),
    (r" with --missing (.+)", rf": enter \1 {_MISSING}"),
    (r"remove or declare them missing", f"remove them, or enter how they are written (such as inf) {_MISSING}"),
    (r"--kind .+?=(\w+) (says|ranks)", r"the “kind” \1 on the Data page \2"),
    (r" with --kind \w+=(\w+)", r" with the “kind” \1 on the Data page"),
    (r"as --kind '[^']*:([^']*)'", r"under “order of words” on the Data page, as in \1"),
    (r", as in --kind \S+=\S+.*", ": choose its “kind” on the Data page"),
    # the manifest of a release that was made elsewhere is not asked for: what was done is learned
    (
        r"(name|give) the right (one|manifest)( with --manifest)?, or (leave it out with )?--no-manifest",
        "mask it again",
    ),
    (r"leave (it|the manifest) out (with --no-manifest|\(--no-manifest\))", "mask it again"),
    (r"use --no-manifest\b", "mask it again"),
    (r" \(--no-manifest learns from the two tables instead\)", ": mask it again"),
    (r"\(--kind, (\w+)\)", r"(“kind” on the Data page, then \1)"),
    (r" with --role \w+=[\w-]+", " under “role” on the Data page"),
    (r"--role \w+=[\w-]+", "choose it under “role” on the Data page"),
    (r": --hierarchy \S+", ": choose its file under “hierarchy” on the Data page"),
    (r" \(see `rankveil inspect`\)", " (see “What the columns are” on the Data page)"),
    (r"give (the file's encoding|the right one with --encoding)", "save the file as UTF-8 and upload it again"),
    (r" with --columns\b", " under “Only these columns”"),
    (r" with --key\b", " under “Match records by this column”"),
    (r"say --no-mapping\b", "tick “records do not correspond”"),
    (r" with --target\b", " under “Target of a stated use”"),
    (
        r"--set lower\.COLUMN=0 --set upper\.COLUMN=\d+, for example",
        "enter both under “Other values for single columns”",
    ),
    (r", as in --set \w+\.\S+", ": enter it under “Other values for single columns”"),
    (r"--set (\w+)=\S+", r"enter it in the field \1"),
    (r", as with --cluster local\b", ""),
    (r", or Parquet in parts with --cluster local\b", ""),
    (r"more: --draws\b", "more: “Random records”"),
    (r"--then (\w+)", r"one more step, \1,"),
    (
        r"give them a key of their own \(--key-file F, pseudonym_key in Python\)",
        "mask in Python, where pseudonym_key gives them a key of their own",
    ),
    (r"delete it, or leave out --resume", "begin a new one"),
)
"""What sentences say of options, and what a page says instead; names of controls stand in “ ”."""


def for_page(sentence: str) -> str:
    """A sentence for people who have a page before them and no command line.

    >>> for_page("no record is complete in all the columns; choose others with --columns")
    'no record is complete in all the columns; choose others under “Only these columns”'
    """
    for option, control in CONTROLS:
        sentence = re.sub(option, control, sentence)
    return sentence
