"""How to repeat a masking without the workbench: a script and a command, for the files that can be downloaded."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rankveil.web.sources import Declared


@dataclass(frozen=True)
class Names:
    """What the files are called when they are downloaded."""

    original: str
    masked: str
    plan: str
    secret: str

    @property
    def kept(self) -> str:
        """The original without the columns that were left out."""
        stem, dot, ending = self.original.rpartition(".")
        return f"{stem}-kept{dot}{ending}"


def flags(declared: Declared) -> list[str]:
    """What was declared of the columns, as options of the command.

    >>> flags(Declared(kinds={"A": "ordinal"}, levels={"A": ("low", "high")}, missing=("n/a",)))
    ['--kind', 'A=ordinal:low<high', '--missing', 'n/a']
    """
    made: list[str] = []
    for name, kind in declared.kinds.items():
        order = "<".join(declared.levels.get(name, ()))
        made += ["--kind", _quoted(f"{name}={kind}{':' + order if order else ''}")]
    for name, role in declared.roles.items():
        if name not in declared.left_out:
            made += ["--role", _quoted(f"{name}={role}")]
    if declared.missing:
        made += ["--missing", ",".join(_quoted(word) for word in declared.missing)]
    return made


def _quoted(text: str) -> str:
    """A text in which a comma does not separate."""
    return f'"{text}"' if "," in text else text


def _text(value: str | list[str]) -> str:
    """A text of Python in double quotes, which a shell's single quotes leave readable."""
    return json.dumps(value)


def left_out_command(names: Names, left_out: Sequence[str]) -> str:
    """A command that writes the original without some columns."""
    code = (
        "from rankveil import files; "
        f"t = files.load({_text(names.original)}); "
        f"files.save(t.data.drop_columns({_text(list(left_out))}), {_text(names.kept)}, dialect=t.dialect)"
    )
    return shlex.join(["python", "-c", code])


def command(names: Names, declared: Declared, *, publish: Sequence[str] = ()) -> str:
    """Commands of a shell that make the same release; the seed goes from the secret to the command unseen."""
    kept = Declared(
        {name: kind for name, kind in declared.kinds.items() if name not in declared.left_out},
        declared.levels,
        declared.roles,
        declared.missing,
        declared.left_out,
    )
    lines = [left_out_command(names, declared.left_out)] if declared.left_out else []
    given = names.kept if declared.left_out else names.original
    seed = f'import json; print(json.load(open({_text(names.secret)}))["seed"])'
    words = ["rankveil", "mask", given, "-o", f"again-{names.masked}", "--plan", names.plan, *flags(kept)]
    if publish:
        words += ["--publish", ",".join(publish)]
    lines.append(f"{shlex.join(['python', '-c', seed])} |\n  {shlex.join([*words, '--seed-file', '-'])}")
    return "\n".join(lines) + "\n"


def script(names: Names, declared: Declared, *, publish: Sequence[str] = ()) -> str:
    """A script of Python that makes the same release."""
    lines = [
        '"""Makes the release again from the original, the plan and the private secret."""',
        "",
        "from pathlib import Path",
        "",
        "import rankveil as rv",
        "from rankveil import files",
        "",
        f"loaded = files.load({names.original!r})",
        "data = loaded.data" + (f".drop_columns({list(declared.left_out)!r})" if declared.left_out else ""),
        f"plan = rv.Plan.from_toml(Path({names.plan!r}).read_text(encoding='utf-8'))",
        f"secret = rv.Secret.from_json(Path({names.secret!r}).read_text(encoding='utf-8'))",
    ]
    schema = _schema(declared)
    if schema:
        lines.append(f"schema = rv.Schema({schema})")
    given = ["data", "plan", "seed=secret.seed"]
    if schema:
        given.append("schema=schema")
    given.append("decimal=loaded.dialect.decimal if loaded.dialect else None")
    if publish:
        given.append(f"publish={list(publish)!r}")
    lines.append(f"release = rv.mask({', '.join(given)})")
    lines.append(f"files.save(release.data, {'again-' + names.masked!r}, dialect=loaded.dialect)")
    return "\n".join(lines) + "\n"


def _schema(declared: Declared) -> str:
    gone = set(declared.left_out)
    said = []
    for what, given in (("kinds", declared.kinds), ("levels", declared.levels), ("roles", declared.roles)):
        kept = {name: value for name, value in given.items() if name not in gone}
        if kept:
            said.append(f"{what}={kept!r}")
    if declared.missing:
        said.append(f"missing={tuple(declared.missing)!r}")
    return ", ".join(said)
