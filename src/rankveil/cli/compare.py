"""rankveil compare: which method, at which strength, is best for these data."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from rankveil.cli import addresses, output, words
from rankveil.cli.clustering import OnCluster
from rankveil.cli.failures import Stopped
from rankveil.cli.options import AsJson, Original, Public, Reading, Report, report_told
from rankveil.cli.progress import watching
from rankveil.cli.room import check_job
from rankveil.errors import ClusterError, ParameterError

EXAMPLE = (
    "rankveil compare rankveil-demo/original.csv --columns AGE,INCOME,SAVINGS \\\n"
    "    --methods copula_swap,rank_swap --at distance_linkage=0.05 --replicates 2 --write-plan best.toml\n"
    "rankveil compare rankveil-demo/original.csv --methods mdav,rank_swap --at risk=0.7 --cluster local:2"
)


def compare(
    *,
    context: typer.Context,
    original: Original,
    methods: Annotated[
        list[str], typer.Option("--methods", metavar="ID,ID", help="See rankveil methods.", show_default=False)
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="WHAT=VALUE",
            help="found=0.09, or a measure: a limit. risk=0.45, utility=0.9 (the first), level=0.2: equal.",
        ),
    ] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="The whole map of risk and utility instead.")] = False,
    risk: Annotated[
        str | None,
        typer.Option("--risk", metavar="ID", help="The measure of risk. [people_found; rank_linkage with --at risk]"),
    ] = None,
    utility: Annotated[
        list[str] | None,
        typer.Option(
            "--utility",
            metavar="ID,ID",
            help="Measures of utility or loss; the first decides. [correlation_change,mean_shift,table_cells]",
        ),
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option("--replicates", metavar="R", help="Maskings of each random method. [5; 2 above 50,000 records]"),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID.NAME=VALUE", help="Fix a parameter of a method or measure. Repeatable."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COL", help="The column that users want to explain by the others.")
    ] = None,
    points: Annotated[int, typer.Option("--points", metavar="N", help="Strengths of each method on the map.")] = 9,
    pick: Annotated[
        str | None,
        typer.Option("--pick", metavar="ID=STRENGTH", help="With --write-plan: this place instead of the recommended."),
    ] = None,
    write_plan: Annotated[
        str | None, typer.Option("--write-plan", metavar="F.toml", help="Write the masking to take, for rankveil mask.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Take up a comparison that was stopped.")] = False,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="F", help="Where finished work is kept meanwhile. [ORIGINAL.compare-state]"),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", metavar="N", help="Processes. [one a core]")] = None,
    on: OnCluster,
    report: Report = None,
    public: Public = False,
    reading: Reading,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the study; not secret.", show_default=True)] = 0,
    as_json: AsJson = False,
) -> int:
    """Find the method and strength that serve these data best.

    Each method gets the least strength that keeps a limit, and they are ranked by what they keep of the data. What is
    recommended keeps the limit on fresh seeds, too. Exit code 1 when no method reaches the target.
    """
    import rankveil as rv
    from rankveil.cli.tables import check_outputs, open_table
    from rankveil.execute import cores

    state = state or _state_of(original)
    outputs = {"report": report, "plan": write_plan, "state": state}
    found = check_outputs(
        {what: path for what, path in outputs.items() if path is not None},
        {"original": original, "file of roles": reading.roles},
    )
    if (at is None) != sweep:
        raise ParameterError("say where to compare: --at found=0.09 (or another target), or --sweep; one of them")
    if sweep and write_plan is not None and pick is None:
        raise ParameterError("a map has no one place to take: name it, as in --pick mdav=7")
    if public and report is None:
        raise ParameterError("--public is about the page of --report: give both")
    if workers is not None and workers < 1:
        raise ParameterError(f"--workers must be at least 1, not {workers}")
    if workers is not None and on.cluster is not None:
        raise ParameterError("--workers are processes of this machine, --cluster names others: give one of them")
    if on.cluster is None and (on.scratch, on.memory) != (None, None):
        raise ParameterError("--scratch and --memory are for work on a cluster: say which, as with --cluster local")
    on.check()
    if pick is not None and write_plan is None:
        raise ParameterError("--pick chooses the plan that --write-plan writes: give both")
    named = words.items(methods, option="--methods")
    parameters, settings = _settings(given, named)
    chosen = _pick(pick, named, parameters, reading.chosen)
    with watching("comparing", quiet=as_json) as progress:
        opened = open_table(original, reading)
        if on.cluster is None:
            remedy = "fewer --columns, --workers 1, or --cluster with workers elsewhere"
            check_job("compare", opened.table, columns=reading.chosen, copies=workers or cores(), remedy=remedy)
        try:
            made = rv.compare(
                opened.table,
                named,
                at=_at(at),
                sweep=sweep,
                risk=risk,
                utility=words.chosen(utility, option="--utility"),
                replicates=replicates,
                parameters=parameters,
                settings=settings,
                target=target,
                points=points,
                columns=reading.chosen,
                seed=seed,
                workers=workers,
                state=state,
                resume=resume,
                progress=progress,
                cluster=on.cluster,
                scratch=on.scratch,
                memory=on.memory,
            )
        except (KeyboardInterrupt, ClusterError) as end:
            if not os.path.exists(state):
                raise
            kept = f"what was finished is kept in {state}: the same command with --resume goes on"
            if isinstance(end, ClusterError):
                raise ClusterError(f"{end}; {kept}") from end
            raise Stopped(f"stopped; {kept}") from None
        made.notes[:0] = opened.notes
        if write_plan is not None and (chosen is not None or made.reached):
            made.write_plan(write_plan, chosen)
        if report is not None:
            made.report(report, command=addresses.command(context.obj), public=public)
    content = made.to_dict()
    content["notes"] = [*found, *content["notes"]]
    if write_plan is not None and chosen is None and not made.reached:
        content["notes"].append(f"{write_plan} was not written: no method reached the target")
        write_plan = None
    if as_json:
        output.emit(content)
    else:
        _show(content, report, write_plan, public=public)
    return 0 if made.reached else 1


def _state_of(original: str) -> str:
    """Where finished work is kept unless a person says otherwise: in this folder, named after the table."""
    from rankveil import files
    from rankveil.files import registry
    from rankveil.partitions import places

    if not places.is_address(original):
        registry.reader(original)  # before its name is used: an address that nothing reads may hold a password
    return f"{os.path.basename(os.path.normpath(files.companion(original)))}.compare-state"


def _at(text: str | None) -> dict[str, float] | str | None:
    if text is None:
        return None
    if "=" not in text:  # a target that has a usual limit
        return text
    found = words.pairs([text], option="--at")
    made = {}
    for what, value in found.items():
        try:
            made[what] = float(value)
        except ValueError:
            raise ParameterError(f"--at {what}={value}: {value} is not a number") from None
    return made


def _settings(
    given: list[str] | None, methods: list[str]
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Parameters of methods, and those of measures, by id."""
    from rankveil import catalogue

    parameters: dict[str, dict[str, str]] = {}
    settings: dict[str, dict[str, str]] = {}
    for name, value in words.pairs(given, option="--set", lists=True).items():
        owner, dot, parameter = name.partition(".")
        if not dot or not parameter:
            raise ParameterError(f"--set {name}={value}: say of which method or measure, as in mdav.block=3")
        of_measure = owner not in methods and owner in catalogue.measures()
        (settings if of_measure else parameters).setdefault(owner, {})[parameter] = value
    return parameters, settings


def _pick(
    text: str | None, methods: list[str], parameters: dict[str, dict[str, str]], columns: list[str] | None
) -> Any:
    """The plan of a place that a person picked."""
    if text is None:
        return None
    from rankveil.catalogue import get_method
    from rankveil.plans import Plan, make_step

    ((name, value),) = words.pairs([text], option="--pick").items()
    strength = get_method(name).strength
    if name not in methods:
        raise ParameterError(f"--pick {text}: {name} is not among the methods compared")
    if strength is None:
        raise ParameterError(f"--pick {text}: {name} has no strength")
    return Plan((make_step(name, {**parameters.get(name, {}), strength: value}, columns=columns),))


def _show(content: dict[str, Any], report: str | None, plan: str | None, *, public: bool) -> None:
    from rankveil.report.comparisons import compare_grids

    output.say(content["recommendation"])
    for caption, headings, rows in compare_grids(content):
        output.gap()
        output.line(caption)
        output.grid(headings, rows)
    if report is not None:
        output.gap()
        output.line(report_told(report, public=public))
    if plan is not None:
        output.gap()
        output.line(f"plan: {plan} (rankveil mask --plan {plan})")
    told = [f"{one['id']}: {one['note']}" for one in content["methods"] if one.get("note")]
    output.notes([*told, *content["notes"]])
