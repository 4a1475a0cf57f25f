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
_GROUP = 12
"""Records that become alike: an intruder finds 1 in 12."""
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
        risk, level = self.audit["spearman_risk"], self.audit["permutation_level"]
        return self.name, level, risk, self.attack.found, self.attack.certain


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
            first = _trial("additive_noise, alpha = 0.1, then round", people, _noise(), chosen)
            second = _trial(f"missing_swap, then mdav, k = {_GROUP}, all columns", people, _grouped(people), chosen)
            certificate = rv.certify(people, second.release, columns=_ATTRIBUTES, diversity="distinct")
            record, subject = _subject(people, second, progress)
            comparison = _compared(people, second)
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

    return (
        rv.Plan.of("additive_noise", columns=_ATTRIBUTES, alpha=0.1).then("round").then("drop", columns=[_IDENTIFIER])
    )


def _grouped(people: Any) -> Any:
    """Groups of all columns; who has no value is hidden first, for a missing cell stays missing in a group."""
    import rankveil as rv

    columns = [name for name in people.column_names if name != _IDENTIFIER]
    plan = rv.Plan.of("missing_swap", columns=columns).then("mdav", columns=columns, k=_GROUP)
    return plan.then("drop", columns=[_IDENTIFIER])


def _trial(name: str, people: Any, plan: Any, seed: Any) -> _Trial:
    import rankveil as rv
    from rankveil import catalogue

    release = rv.mask(people, plan, seed=seed, publish=("permutation_level",)).published()
    measures = [name for name in catalogue.measures() if name != "people_found"]  # of all columns: the attack
    audit = rv.audit(people, release, columns=_ATTRIBUTES, measures=measures)
    return _Trial(name, release, audit, rv.attack(people, release))


def _subject(people: Any, trial: _Trial, progress: Any) -> tuple[dict[str, Any], Verification]:
    """The first person with all values asks about herself."""
    import rankveil as rv

    rows = people.select(list(_SUBJECT)).to_pylist()
    record = next(row for row in rows if None not in row.values())
    return record, rv.verify(trial.release.data, record, manifest=trial.release.manifest, progress=progress)


def _compared(people: Any, trial: _Trial) -> Comparison:
    """Other methods at the risk that the release has."""
    import rankveil as rv

    return rv.compare(
        people.select(_ATTRIBUTES),
        ("copula_swap", "additive_noise", "mdav"),
        at={"risk": trial.audit["rank_linkage"]},
        utility=("um", "pil"),
        replicates=3,
        workers=1,
    )


def _comparison(trials: list[_Trial]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    headings = ("masking", "mean rank change", "largest rank correlation", "people found", "with certainty")
    return headings, [trial.row() for trial in trials]


def _page(made: _Demo) -> str:
    from dataclasses import replace

    from rankveil.report import attacks, audits, comparisons
    from rankveil.report.decision import attack_opening
    from rankveil.report.page import Grid, Section, render

    released, subject, record = made.released, made.subject, made.record
    attacked = released.attack.to_dict()
    mine = subject.to_dict()
    own = zip(mine["attributes"], record.values(), mine["nearest"], mine["ranks"], mine["d"], strict=True)
    sections = [
        Section(
            "Two maskings compared",
            "The same people, masked in two ways; the second one is released as masked.csv. Five attributes are "
            "measured; an intruder uses all columns.",
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
        f"1000 made-up people, all their columns masked in groups of {_GROUP}.\n\n"
        f"{audits.audit_words(released.audit.to_dict())}\n\n{attacks.attack_words(attacked)}"
    )
    return render(
        title="rankveil demo",
        lead=lead,
        sections=sections,
        internal=True,
        command="rankveil demo",
        opening=replace(attack_opening(attacked), rest="How it was made, measured and attacked"),
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
    folder = os.path.join(out, "")
    output.say("1000 made-up people; their identifier was dropped and the rest was masked in two ways.")
    output.gap()
    output.grid(*_comparison(made.trials))
    output.gap()
    for trial in made.trials:
        output.say(f"{trial.name}: {trial.attack.sentence} By the limit of 1 in 11 it {trial.attack.verdict}.")
    content = made.certificate.to_dict()
    least = ", ".join(f"{name} {d}" for name, d in zip(content["attributes"], content["largest"]["d"], strict=True))
    if any(content["largest"]["d"]):
        output.say(f"The least that any value of the second masking moved, in ranks: {least}.")
    else:
        output.say(
            "Neither guarantees that every value moves: rankveil certify tells the least, distance_swap guarantees one."
        )
    output.say(_subject_words(made.subject))
    output.say(f"Other methods at the risk of the release: {made.comparison.recommendation()}")
    output.gap()
    output.say(
        f"Written: {folder}original.csv, masked.csv with its manifest and secret, report.html (for internal use),",
        "and region.csv, the groups of the regions.",
    )
    values = ",".join(f"{name}={value}" for name, value in made.record.items())
    output.say("Try next:")
    for command in (
        f"rankveil inspect {folder}original.csv",
        f"rankveil audit {folder}original.csv {folder}masked.csv --by REGION --target INCOME",
        f"rankveil attack {folder}original.csv {folder}masked.csv --subsets",
        f"rankveil verify {folder}masked.csv --record {values}",
        f"rankveil mask {folder}original.csv -o {folder}moved.csv --method distance_swap --set d=100 --columns TAX",
        f"rankveil mask {folder}original.csv -o {folder}grouped.csv --method recode --set level=1 --columns REGION "
        f"--hierarchy REGION={folder}region.csv",
    ):
        output.line(f"  {command}")
    output.notes(made.released.release.notes)
