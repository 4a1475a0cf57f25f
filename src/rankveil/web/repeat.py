"""How to repeat a masking without the workbench: a script and a command, for the files that can be downloaded."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rankveil.web.declared import Declared


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
        made += ["--role", _quoted(f"{name}={role}")]
    for name, kept in declared.hierarchies.items():
        made += ["--hierarchy", _quoted(f"{name}={kept.name}")]
    if declared.missing:
        made += ["--missing", ",".join(_quoted(word) for word in declared.missing)]
    return made


def flags_of_whole(declared: Declared) -> list[str]:
    """The same for the original with all its columns: those that were left out here are not compared there.

    >>> flags_of_whole(Declared(roles={"ID": "identifier", "AGE": "quasi-identifier"}, left_out=("ID",)))
    ['--role', 'AGE=quasi-identifier', '--role', 'ID=other']
    """
    known = declared.released
    return flags(replace(known, roles={**known.roles, **dict.fromkeys(declared.left_out, "other")}))


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


def command(names: Names, declared: Declared, *, publish: Sequence[str] = (), formulas: bool = False) -> str:
    """Commands of a shell that make the same release; the seed goes from the secret to the command unseen."""
    lines = [left_out_command(names, declared.left_out)] if declared.left_out else []
    given = names.kept if declared.left_out else names.original
    seed = f'import json; print(json.load(open({_text(names.secret)}))["seed"])'
    words = ["rankveil", "mask", given, "-o", f"again-{names.masked}", "--plan", names.plan]
    words += flags(declared.released)
    if publish:
        words += ["--publish", ",".join(publish)]
    if formulas:  # a file for spreadsheets is written as it is here
        words += ["--formulas", "keep"]
    lines.append(f"{shlex.join(['python', '-c', seed])} |\n  {shlex.join([*words, '--seed-file', '-'])}")
    return "\n".join(lines) + "\n"


def script(names: Names, declared: Declared, *, publish: Sequence[str] = (), formulas: bool = False) -> str:
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
    kept = ", formulas='keep'" if formulas else ""
    lines.append(f"release.write({'again-' + names.masked!r}, dialect=loaded.dialect{kept})")
    return "\n".join(lines) + "\n"


def _schema(declared: Declared) -> str:
    known, said = declared.released, []
    for what, given in (("kinds", known.kinds), ("levels", known.levels), ("roles", known.roles)):
        if given:
            said.append(f"{what}={given!r}")
    if known.hierarchies:
        said.append(f"hierarchies={ {name: kept.name for name, kept in known.hierarchies.items()}!r}")
    if declared.missing:
        said.append(f"missing={tuple(declared.missing)!r}")
    return ", ".join(said)
