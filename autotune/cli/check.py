"""``autotune check``: read a space, count it, say what each constraint removes and how long it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import device_option, find_space, json_option, print_json

if TYPE_CHECKING:
    from autotune.space.spec import StudySpec


@click.command("check")
@click.argument("space")
@device_option
@json_option
def command(space: str, device: str | None, as_json: bool) -> int:
    """Read SPACE and say how many configurations there are, and what each constraint removes.

    Nothing is compiled or measured. Exit code 2 where the file is wrong, 3 where nothing is feasible.
    """
    from autotune.session.loading import load_spec

    spec = load_spec(find_space(space), device=device)
    document = describe(spec)
    if as_json:
        print_json(document)
    else:
        click.echo(say(document))
    return 3 if document["feasible"] == 0 else 0


def describe(spec: StudySpec) -> dict[str, Any]:
    """Counts, what each constraint removes, the default's standing and the longest time, as JSON."""
    from autotune.errors import InputError
    from autotune.search.registry import strategy_class
    from autotune.space.removals import combinations, removed_by_each

    strategy_class(spec.search.strategy)
    feasible = spec.space.feasible
    low, high = feasible.bounds
    try:
        default: dict[str, Any] = {"feasible": True, "configuration": dict(spec.space.default())}
    except InputError as error:
        default = {"feasible": False, "why": str(error)}
    return {
        "space": spec.name,
        "knobs": len(spec.space.knobs),
        "continuous": list(spec.space.continuous),
        "cartesian": combinations(spec.space),
        "feasible": feasible.size,
        "feasible_between": [low, high],
        "constraints": [
            {"rule": r.rule.text, "removes": r.removes, "only_this_one": r.only}
            for r in removed_by_each(spec.space)
        ],
        "default": default,
        "time": _time(spec),
    }


def _time(spec: StudySpec) -> dict[str, float | None]:
    """Seconds: the budget's, and the longest that its trials can take if each runs to its limits."""
    trial = spec.measure.prepare_timeout + spec.measure.timeout
    trials = spec.budget.trials
    return {"budget": spec.budget.time, "worst": None if trials is None else trials * trial}


def say(document: dict[str, Any]) -> str:
    from autotune.report.numbers import say_seconds

    count = document["feasible"]
    if count is None:
        low, high = document["feasible_between"]
        feasible = f"between {low:,} and {high:,} feasible"
    else:
        feasible = f"{count:,} feasible"
    lines = [
        f"{document['space']}: {document['knobs']} knobs, "
        f"{_count(document['cartesian'])} combinations, {feasible}"
    ]
    if document["continuous"]:
        lines.append(f"  continuous beside them: {', '.join(document['continuous'])}")
    for row in document["constraints"]:
        lines.append(
            f"  removes {_count(row['removes']):>15}  (alone {_count(row['only_this_one'])})  {row['rule']}"
        )
    default = document["default"]
    lines.append("  the default is feasible" if default["feasible"] else f"  {default['why']}")
    time = document["time"]
    if time["budget"] is not None:
        lines.append(
            f"  the search is given {say_seconds(time['budget'])}, then the finalists are measured again"
        )
    if time["worst"] is not None:
        lines.append(f"  at worst its trials take {say_seconds(time['worst'])}, if each runs to its limits")
    return "\n".join(lines)


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
