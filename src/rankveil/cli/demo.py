"""rankveil demo: the main job on people who never were, from a table to a release and its report."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankveil.cli import output
from rankveil.cli.options import AsJson
from rankveil.cli.progress import watching

if TYPE_CHECKING:
    from rankveil.auditing import Audit
    from rankveil.comparison import Comparison
    from rankveil.people.certificate import Certificate
    from rankveil.people.intruder import Attack
    from rankveil.people.protector import Release
    from rankveil.people.subject import Verification

EXAMPLE = "rankveil demo -o rankveil-demo"
DEMO_SCHEMA = "rankveil/demo/1"

_ATTRIBUTES = ("AGE", "HOURS", "INCOME", "TAX", "SAVINGS")
_SUBJECT = ("AGE", "INCOME", "SAVINGS")
_LIMIT = 0.09
_IDENTIFIER = "PERSON"
_REGIONS = "North;coast;*\nEast;inland;*\nSouth;inland;*\nWest;coast;*\n"
"""What the regions belong to, as --hierarchy takes it."""


@dataclass(frozen=True)
class _Trial:
    """A masking, measured and attacked."""

    name: str
    release: Release
    audit: Audit
    attack: Attack

    def row(self) -> tuple[Any, ...]:
        found = f"{100 * self.attack.found:.3g} %"
        return self.name, found, self.attack.certain, self.audit["correlation_change"], self.audit.status.upper()


@dataclass(frozen=True)
class _Demo:
    """All that the demo found."""

    trials: list[_Trial]
    """The last one is released."""
    certificate: Certificate
    record: dict[str, Any]
    subject: Verification
    comparison: Comparison

    @property
    def released(self) -> _Trial:
        """The masking that is released."""
        return self.trials[-1]


def demo(
    *,
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write into.", show_default=True)
    ] = "rankveil-demo",
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="HEX", help="The seed of the masking. [a fresh one]")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show the main job on a made-up table.

    It is masked, audited, attacked and compared with other maskings, and the release is written with a report; needs no
    file and no network.
    """
    import rankveil as rv
    from rankveil import datasets, files
    from rankveil.cli.tables import check_outputs, folder_for
    from rankveil.seeds import Seed

    chosen = Seed.of(seed)
    made_folder = folder_for(out)
    try:
        names = ["original.csv", "masked.csv", "masked.csv.manifest.json", "masked.csv.secret.json", "report.html"]
        names.append("region.csv")
        paths = {name: os.path.join(out, name) for name in names}
        check_outputs(paths, {})
        with watching("masking and attacking", quiet=as_json) as progress:
            original = datasets.demo()
            people = _as_written(original)
            first = _trial("10 % of noise on the numbers, then rounded", people, _noise(), chosen)
            second = _trial("the defaults of rankveil mask", people, "copula_swap", chosen)
            second.audit.of_files(paths[names[0]], paths[names[1]])
            certificate = rv.certify(people, second.release, columns=_ATTRIBUTES, diversity="distinct")
            record, subject = _subject(people, second, progress)
            comparison = _compared(people)
            made = _Demo([first, second], certificate, record, subject, comparison)
            page = _page(made)
            with files.Staged() as staged:
                secret, manifest = second.release.secret.to_json(), second.release.manifest.to_json()
                staged.add(paths[names[3]], lambda file: file.write(secret.encode()), mode=0o600)
                staged.add(paths[names[2]], lambda file: file.write(manifest.encode()))
                staged.add(paths[names[0]], files.table_writer(original, names[0]))
                staged.add(paths[names[1]], files.table_writer(second.release.data, names[1]))
                staged.add(paths[names[4]], lambda file: file.write(page.encode()))
                staged.add(paths[names[5]], lambda file: file.write(_REGIONS.encode()))
    except BaseException:
        if made_folder:
            with suppress(OSError):
                os.rmdir(out)
        raise
    if as_json:
        output.emit(_document(made, paths))
    else:
        _show(made, out)
    return 0


def _as_written(people: Any) -> Any:
    """The table as its file is read again: a CSV file has no order of labels, and nothing here uses one."""
    import pyarrow as pa

    fields = [(name, people[name]) for name in people.column_names]
    return pa.table(
        {name: cells.cast(pa.string()) if pa.types.is_dictionary(cells.type) else cells for name, cells in fields}
    )


def _noise() -> Any:
    import rankveil as rv

    return rv.Plan.of("additive_noise", columns=_ATTRIBUTES, alpha=0.1).then("round")


def _trial(name: str, people: Any, plan: Any, seed: Any) -> _Trial:
    import rankveil as rv

    release = rv.mask(people, plan, seed=seed, publish=("permutation_level",)).published()
    return _Trial(name, release, rv.audit(people, release), rv.attack(people, release))


def _subject(people: Any, trial: _Trial, progress: Any) -> tuple[dict[str, Any], Verification]:
    """The first person with all values asks about herself."""
    import rankveil as rv

    rows = people.select(list(_SUBJECT)).to_pylist()
    record = next(row for row in rows if None not in row.values())
    return record, rv.verify(trial.release.data, record, manifest=trial.release.manifest, progress=progress)


def _compared(people: Any) -> Comparison:
    """How strong two methods must be to keep the limit, were the numbers alone released."""
    import rankveil as rv

    methods = ("copula_swap", "additive_noise")
    return rv.compare(people.select(_ATTRIBUTES), methods, at={"found": _LIMIT}, replicates=1, workers=1)


def _comparison(trials: list[_Trial]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    headings = ("masking", "people found", "with certainty", "largest change of a correlation", "decision")
    return headings, [trial.row() for trial in trials]


def _page(made: _Demo) -> str:
    from dataclasses import replace

    from rankveil.report import attacks, audits, comparisons
    from rankveil.report.decision import opening
    from rankveil.report.page import Grid, Section, render

    released, subject, record = made.released, made.subject, made.record
    attacked = released.attack.to_dict()
    mine = subject.to_dict()
    own = zip(mine["attributes"], record.values(), mine["nearest"], mine["ranks"], mine["d"], strict=True)
    sections = [
        Section(
            "Two maskings compared",
            "The same people, masked in two ways; the second one is released as masked.csv.",
            tables=[Grid(*_comparison(made.trials))],
        ),
        # the notes of the attack hold those of the other two
        *audits.audit_sections(released.audit.to_dict() | {"notes": []}, released.audit.pictures()),
        attacks.certificate_section(made.certificate.to_dict() | {"notes": []}),
        *attacks.attack_sections(attacked, released.attack.pictures()),
        Section(
            "One subject's own check",
            _subject_words(subject),
            tables=[Grid(("attribute", "her value", "nearest released", "its rank", "distance d"), list(own))],
            notes=mine["notes"],
        ),
        *comparisons.compare_sections(made.comparison.to_dict()),
    ]
    lead = (
        "1000 made-up people, masked by the defaults of rankveil mask.\n\n"
        f"{audits.audit_words(released.audit.to_dict())}\n\n{attacks.attack_words(attacked)}"
    )
    return render(
        title="rankveil demo",
        lead=lead,
        sections=sections,
        internal=True,
        command="rankveil demo",
        opening=replace(opening(released.audit.to_dict()), rest="How it was made, measured and attacked"),
    )


def _subject_words(subject: Verification) -> str:
    return (
        f"A subject who knows her own {', '.join(subject.names)}, the release and its manifest is told: "
        f"{subject.recognition.sentence}"
    )


def _document(made: _Demo, paths: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": DEMO_SCHEMA,
        "files": list(paths.values()),
        "maskings": [
            {
                "masking": trial.name,
                "measures": {name: trial.audit[name] for name in trial.audit},
                "claims": trial.attack.claims,
                "claims_right": trial.attack.claims_right,
                "found": trial.attack.found,
                "certain": trial.attack.certain,
                "verdict": trial.attack.verdict,
            }
            for trial in made.trials
        ],
        "certify": made.certificate.to_dict(),
        "verify": {"asked": made.record, **made.subject.to_dict()},
        "compare": made.comparison.to_dict(),
        "notes": list(made.released.release.notes),
    }


def _show(made: _Demo, out: str) -> None:
    from rankveil.cli.decision import show_decision

    folder = os.path.join(out, "")
    output.say("1000 made-up people, masked in two ways; each release was audited and attacked.")
    output.gap()
    output.grid(*_comparison(made.trials))
    output.gap()
    for trial in made.trials:
        output.say(f"{trial.name[0].upper()}{trial.name[1:]}: {trial.attack.sentence}")
    output.gap()
    output.say("The second one is released. Its audit:")
    output.gap()
    show_decision(made.released.audit.to_dict())
    output.gap()
    content = made.certificate.to_dict()
    least = ", ".join(f"{name} {d}" for name, d in zip(content["attributes"], content["largest"]["d"], strict=True))
    if any(content["largest"]["d"]):
        output.say(f"The least that any value of it moved, in ranks: {least}.")
    else:
        output.say(
            "It does not guarantee that every value moves: rankveil certify tells the least, distance_swap "
            "guarantees one."
        )
    output.say(_subject_words(made.subject))
    output.say(f"Were its numbers alone released: {made.comparison.recommendation()}")
    output.gap()
    output.say(
        f"Written: {folder}original.csv, masked.csv with its manifest and secret, report.html (for internal use),",
        "and region.csv, the groups of the regions.",
    )
    values = ",".join(f"{name}={value}" for name, value in made.record.items())
    output.say("Try next:")
    for command in (
        f"rankveil inspect {folder}original.csv",
        f"rankveil mask {folder}original.csv -o {folder}release.csv",
        f"rankveil audit {folder}original.csv {folder}release.csv --all",
        f"rankveil attack {folder}original.csv {folder}masked.csv --subsets",
        f"rankveil verify {folder}masked.csv --record {values}",
        f"rankveil mask {folder}original.csv -o {folder}moved.csv --method distance_swap --set d=100 --columns TAX",
        f"rankveil mask {folder}original.csv -o {folder}grouped.csv --method recode --set level=1 --columns REGION "
        f"--hierarchy REGION={folder}region.csv",
    ):
        output.line(f"  {command}")
    output.notes(made.released.release.notes)
