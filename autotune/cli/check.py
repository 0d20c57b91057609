"""``autotune check``: read a space, count it, say what each constraint removes and how long it may take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.completion import spaces
from autotune.cli.options import (
    device_option,
    echo,
    find_space,
    json_option,
    print_json,
    store_option,
    workload_option,
)
from autotune.cli.silence import READING_A_SPACE, said_if_long

if TYPE_CHECKING:
    from autotune.errors import InputError
    from autotune.session.forecast import Forecast
    from autotune.space.feasible_set.factors import Estimate
    from autotune.space.feasible_set.removals import Removal
    from autotune.space.space import Space
    from autotune.space.spec import Family, StudySpec


ENOUGH = 100
"""How many configurations are drawn to see whether a search would find any."""
COUNTING = "counting what the constraints leave: that may take minutes, and Ctrl-C ends it"


@click.command("check")
@click.argument("space", shell_complete=spaces)
@workload_option
@device_option
@store_option
@json_option
def command(space: str, facts: tuple[str, ...], device: str | None, store: str | None, as_json: bool) -> int:
    """Count the configurations of SPACE, say what each constraint removes, and forecast the time of a search.

    Nothing is compiled or measured; the forecast is based on earlier trials in the store, if there are any.
    The exit code is 2 if the file is wrong, and 3 if no configuration is feasible, or so few that drawing the
    continuous knobs at random finds none.
    """
    from autotune.session.opening.loading import load_family
    from autotune.session.opening.opening import try_strategy
    from autotune.space.reading.given_facts import read_given_facts

    with said_if_long(READING_A_SPACE, quiet=as_json):
        family = load_family(find_space(space), device=device, workload=read_given_facts(facts))
    unfit = None
    if device is None:  # what is installed here says nothing about another machine
        try_strategy(family.specs[0])
        unfit = _unfit_objective(family.specs[0])
    if unfit and as_json:
        raise unfit
    with said_if_long(COUNTING, quiet=as_json):
        if family.several:
            feasible = _check_many(family, as_json)
        else:
            # How long trials took on this machine says nothing about another device.
            elsewhere = bool(device or unfit)
            feasible = _check_one(family, store, as_json, elsewhere)
    if unfit:  # raised only now: a space can be counted before its objective is written
        raise unfit
    return 0 if feasible else 3


def _check_one(family: Family, store: str | None, as_json: bool, elsewhere: bool) -> bool:
    """Print the counts, and a forecast unless ``elsewhere``; returns whether anything is feasible."""
    [spec] = family.specs
    forecast = None if elsewhere else _forecast(spec, store)
    document = describe(spec) | {"time": _time(family, forecast)}
    print_json(document) if as_json else echo(say(document))
    return _is_feasible(document)


def _is_feasible(document: dict[str, Any]) -> bool:
    return document["feasible"] != 0 and not document["too_rare"]


def _unfit_objective(spec: StudySpec) -> InputError | None:
    """The error if the objective does not exist or does not accept the knobs; it is not run."""
    from autotune.errors import InputError
    from autotune.measure.commands.problems import problems
    from autotune.measure.loading.sources import require_sources
    from autotune.measure.loading.target_name import require_target
    from autotune.measure.loading.written_macros import require_macros
    from autotune.measure.loading.written_parameters import require_parameters
    from autotune.space.spec import CommandObjective, PythonObjective

    match spec.objective:
        case PythonObjective():
            try:
                require_target(spec.objective)
                require_sources(spec.objective)
                names = [knob.name for knob in spec.space.knobs]
                # A knob whose condition only uses facts exists always or never.
                conditional = [knob.name for knob in spec.space.knobs if knob.when and knob.when.knobs]
                require_parameters(spec.objective, spec.workload, names, conditional)
                require_macros(spec.objective, names)
            except InputError as error:
                return error
        case CommandObjective() if found := problems(spec.objective, spec.metrics):
            return InputError(found)
    return None


def _check_many(family: Family, as_json: bool) -> bool:
    """Print the counts for each workload; returns whether all have a feasible configuration.

    There is no forecast of the time: how the budget is shared is decided during the search.
    """
    given = _given(family)
    documents = [{"workload": family.label(n), **describe(spec)} for n, spec in enumerate(family.specs)]
    if as_json:
        print_json({"space": family.name, "workloads": documents, "time": given})
    else:
        for document, held_out in zip(documents, family.held_out, strict=True):
            echo(f"{document['workload']}{' (held out)' if held_out else ''}")
            echo("\n".join(f"  {line}" for line in say_space(document)))
        if given["budget"] is not None:
            again = "the finalists of each are measured again and all winners on each"
            echo(_say_given(given, again, "over all workloads"))
    return all(map(_is_feasible, documents))


def _forecast(spec: StudySpec, url: str | None) -> Forecast | None:
    """The forecast by the trials in the store; ``None`` if there are none, or no store yet."""
    from autotune.session.forecast import foresee
    from autotune.space.spec import ReplayObjective
    from autotune.store.databases.address import read_address
    from autotune.store.databases.opening import EmptyStoreError
    from autotune.store.store import Store

    if isinstance(spec.objective, ReplayObjective) or read_address(url).kind == "memory":
        return None
    try:
        with Store.open(url, readonly=True) as store:
            return foresee(spec, store)
    except EmptyStoreError:
        return None


def describe(spec: StudySpec) -> dict[str, Any]:
    """The counts, what each constraint removes, and whether the default is feasible, as JSON."""
    from autotune.search.registry import strategy_class
    from autotune.space.configuration import plain
    from autotune.space.feasible_set.absent import absent_knobs
    from autotune.space.feasible_set.removals import combinations, removed_by_each
    from autotune.space.first_tries import passed_over

    strategy_class(spec.search.strategy)
    feasible = spec.space.feasible
    removals = removed_by_each(spec.space)
    low, high = feasible.bounds
    return {
        "space": spec.name,
        "knobs": len(spec.space.knobs),
        "continuous": list(spec.space.continuous),
        "hanging": list(spec.space.hanging),
        "cartesian": _number(combinations(spec.space)),
        "feasible": feasible.size,
        "feasible_between": [low, high],
        "feasible_estimate": _number(feasible.estimate),
        "feasible_estimate_between": _between(feasible.estimate),
        "constraints": [_constraint(removal) for removal in removals or ()],
        "too_rare": _too_rare(spec.space),
        "uncounted": len(spec.space.constraints) if removals is None else 0,
        "never": [
            {"knob": knob.name, "when": knob.when.text, "facts": plain(knob.when.facts)}
            for knob in spec.space.knobs
            if knob.when is not None and knob.when.never
        ],
        "absent": [{"knob": knob.name, "when": str(knob.when)} for knob in absent_knobs(spec.space)],
        "left_empty": _left_empty(spec),
        "default": _default(spec.space),
        "first": {
            "given": len(spec.search.first),
            "passed_over": passed_over(spec.space, spec.search.first),
        },
    }


def _left_empty(spec: StudySpec) -> list[dict[str, str]]:
    """Options that the command is given without a value where a knob does not exist."""
    from dataclasses import asdict

    from autotune.measure.commands.left_empty import left_empty
    from autotune.space.spec import CommandObjective

    if not isinstance(spec.objective, CommandObjective):
        return []
    conditional = [
        knob.name for knob in spec.space.knobs if knob.when and (knob.when.knobs or knob.when.never)
    ]
    return [asdict(found) for found in left_empty(spec.objective, conditional)]


def _constraint(removal: Removal) -> dict[str, Any]:
    return {
        "rule": removal.rule.text,
        "removes": _number(removal.removes),
        "removes_between": _between(removal.removes),
        "only_this_one": _number(removal.only),
        "only_this_one_between": _between(removal.only),
        "share": removal.share,
    }


def _default(space: Space) -> dict[str, Any]:
    from autotune.errors import InputError
    from autotune.space.configuration import plain

    try:
        return {"feasible": True, "configuration": plain(space.default())}
    except InputError as error:
        return {"feasible": False, "why": str(error)}


def _too_rare(space: Space) -> str:
    """Why random draws of the continuous knobs find no feasible configuration; empty if they do."""
    import numpy as np

    from autotune.errors import InputError

    try:
        if space.feasible:
            space.sample(np.random.default_rng(0), ENOUGH)
    except InputError as error:
        return str(error)
    return ""


def _number(count: Estimate | None) -> int | None:
    return None if count is None else round(count.value)


def _between(count: Estimate | None) -> list[int] | None:
    """The bounds of a count; both are the same if it is exact."""
    return None if count is None else [math.floor(count.low), math.ceil(count.high)]


def _time(family: Family, forecast: Forecast | None) -> dict[str, Any]:
    """Times in seconds: the budget, the finale, the forecast, and ``worst``, the most that the limits allow.

    ``worst`` is ``None`` for a replay, which takes hardly any time, and if there is a forecast.
    """
    from autotune.session.forecast import trials_to_go
    from autotune.space.spec import ReplayObjective

    spec = family.specs[0]
    worst = None
    if forecast is None and not isinstance(spec.objective, ReplayObjective):
        trials = trials_to_go(spec)
        worst = trials * (spec.measure.prepare_timeout + spec.measure.timeout) if trials else None
    return {
        **_given(family),
        "forecast": None if forecast is None else forecast.to_document(),
        "worst": worst,
    }


def _given(family: Family) -> dict[str, float | None]:
    """Seconds for the search, and about how many for measuring the finalists again after it."""
    from autotune.session.forecast import seconds_of_finale

    return {"budget": family.specs[0].budget.time, "finale": seconds_of_finale(family)}


def say(document: dict[str, Any]) -> str:
    time = _say_time(document["time"]) if _is_feasible(document) else ()
    return "\n".join([*say_space(document), *time])


def say_space(document: dict[str, Any]) -> list[str]:
    """The lines of :func:`say` without the time."""
    from autotune.report.numbers import say_count, say_whole

    count, between = document["feasible"], document["feasible_between"]
    feasible = _count(document["feasible_estimate"], document["feasible_estimate_between"])
    if count is None:
        low, high = map(say_whole, between)
        feasible += f" (too many states to count exactly: between {low} and {high})"
    knobs, continuous = say_count(document["knobs"], "knob"), ", ".join(document["continuous"])
    hanging = ", ".join(document["hanging"])
    if len(document["continuous"]) + len(document["hanging"]) == document["knobs"]:
        lines = [f"{document['space']}: {knobs}, of continuous values: {continuous}"]
    else:
        combinations = say_count(document["cartesian"], "combination")
        lines = [f"{document['space']}: {knobs}, {combinations}, {feasible} feasible"]
        lines += [f"  continuous beside them: {continuous}"] if continuous else []
    lines += (
        [f"  not counted, since a continuous knob decides whether it is there: {hanging}"] if hanging else []
    )
    for row in document["constraints"]:
        if row["removes"] is None:
            share = "a share" if row["share"] is None else _share(row["share"])
            lines.append(f"  removes {share:>15}  of random draws  {row['rule']}")
            continue
        removes = _count(row["removes"], row["removes_between"])
        alone = _count(row["only_this_one"], row["only_this_one_between"])
        also = f"({alone} of them alone)  " if row["removes"] else ""
        lines.append(f"  removes {removes:>15}  {also}{row['rule']}")
    if document["uncounted"]:
        lines.append(f"  its {document['uncounted']:,} constraints are too many to say what each removes")
    for row in document["never"]:
        facts = ", ".join(f"{name} is {value!r}" for name, value in row["facts"].items())
        lines.append(f"  {row['knob']} never exists here: {row['when']}, but {facts}")
    for row in document["absent"]:
        lines.append(f"  {row['knob']} exists in no configuration: nothing feasible has {row['when']}")
    for row in document["left_empty"]:
        lines.append(
            f"  where {row['knob']} does not exist, {row['option']} stands without a value in a text of the"
            " command: an argument or a variable of its own is left out then"
        )
    if document["too_rare"]:
        lines += [f"  {line.strip()}" for line in document["too_rare"].splitlines()]
    default = document["default"]
    lines.append(indent("the default is feasible" if default["feasible"] else default["why"], "  "))
    given, not_tried = document["first"]["given"], document["first"]["passed_over"]
    if given:
        lines.append(f"  {given - len(not_tried)} of {say_count(given, 'configuration')} to try first")
    return [*lines, *(f"  {why}" for why in not_tried)]


def _say_time(time: dict[str, Any]) -> Iterator[str]:
    from autotune.report.numbers import say_seconds

    given, worst = time["budget"], time["worst"]
    if given is not None:
        yield f"  {_say_given(time, 'the finalists are measured again')}"
    if time["forecast"] is not None:
        yield from _say_forecast(time["forecast"], given)
    elif worst is not None and (given is None or worst < given):
        yield (
            f"  no earlier trial to judge the time by: at worst it takes {say_seconds(worst)},"
            " if each trial runs to its limits"
        )


def _say_given(time: dict[str, Any], again: str, over: str = "") -> str:
    """How long it searches, and what comes ``again`` after that."""
    from autotune.report.numbers import say_seconds

    given = " ".join(filter(None, ["the search is given", say_seconds(time["budget"]), over]))
    if not time["finale"]:
        return given
    return (
        f"{given}; then {again}, which takes about {say_seconds(time['finale'])}, or more where runs are slow"
    )


def _say_forecast(forecast: dict[str, Any], given: float | None) -> Iterator[str]:
    from autotune.report.numbers import say_count, say_seconds, say_value

    trials, lasts, each = forecast["trials"], forecast["duration"], forecast["each"]
    if trials == 0:
        yield "  its trials are done already"
    elif lasts is not None:
        known = lasts["low"] is not None
        between = f" ({say_seconds(lasts['low'])} to {say_seconds(lasts['high'])})" if known else ""
        more = ", which is more than it is given" if given is not None and lasts["seconds"] > given else ""
        about = f"{say_seconds(lasts['seconds'])}{between}{more}"
        yield f"  the {say_count(trials, 'trial')} to go take about {about}"
    differs = f", which differs in its {', '.join(forecast['differs'])}" if forecast["differs"] else ""
    prepare, measure = say_value(each["prepare"], "s", 2), say_value(each["measure"], "s", 2)
    yield (
        f"  judged by {say_count(forecast['known'], 'trial')} of {forecast['study']}{differs}:"
        f" one takes about {prepare} to prepare and {measure} to measure"
    )


def _count(number: int, between: list[int]) -> str:
    """``1,234``; ``~1,230`` for an estimate; ``at most 1,230`` if its lower end is 0."""
    from autotune.report.numbers import say_whole

    low, high = between
    if low == high:
        return say_whole(number)
    return f"at most {say_whole(_rounded(high))}" if low == 0 else f"~{say_whole(_rounded(number))}"


def _share(share: float) -> str:
    """A share of random draws; never 100 %, since further draws might be feasible."""
    return "over 99.9 %" if share >= 0.9995 else f"~{100 * share:.3g} %"


def _rounded(number: int) -> int:
    """``number`` rounded to three digits, which is all that an estimate is good for."""
    return round(number, min(3 - len(str(number)), 0))
