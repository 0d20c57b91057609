"""``autotune check``: read a space, count it, say what each constraint removes and how long it may take."""

from __future__ import annotations

import math
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
    from autotune.report.words.counted_space import say_space, say_time

    [spec] = family.specs
    forecast = None if elsewhere else _forecast(spec, store)
    document = describe(spec) | {"time": _time(family, forecast)}
    feasible = _is_feasible(document)
    if as_json:
        print_json(document)
    else:
        echo("\n".join([*say_space(document), *(say_time(document["time"]) if feasible else ())]))
    return feasible


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
    from autotune.report.words.counted_space import say_given, say_space

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
            echo(say_given(given, again, "over all workloads"))
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
    from dataclasses import asdict

    from autotune.search.registry import strategy_class
    from autotune.space.configuration import plain
    from autotune.space.feasible_set.absent import absent_knobs
    from autotune.space.feasible_set.removals import combinations, removed_by_each
    from autotune.space.first_tries import passed_over
    from autotune.space.steep import steep_ranges

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
        "steep": [asdict(found) for found in steep_ranges(spec.space)],
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
