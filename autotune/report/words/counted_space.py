"""What ``autotune check`` counted of a space, in words; the counts are those that it prints as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent
from typing import Any

from autotune.report.numbers import say_count, say_seconds, say_value, say_whole


def say_space(document: dict[str, Any]) -> list[str]:
    """What the knobs and the constraints leave, line by line."""
    default = document["default"]
    stands = indent("the default is feasible" if default["feasible"] else default["why"], "  ")
    return [
        *_say_size(document),
        *_say_constraints(document),
        *_say_knobs(document),
        *(f"  {line.strip()}" for line in (document["too_rare"] or "").splitlines()),
        stands,
        *_say_first(document["first"]),
    ]


def _say_size(document: dict[str, Any]) -> Iterator[str]:
    count, between = document["feasible"], document["feasible_between"]
    feasible = _count(document["feasible_estimate"], document["feasible_estimate_between"])
    if count is None:
        low, high = map(say_whole, between)
        feasible += f" (too many states to count exactly: between {low} and {high})"
    knobs, continuous = say_count(document["knobs"], "knob"), ", ".join(document["continuous"])
    hanging = ", ".join(document["hanging"])
    if len(document["continuous"]) + len(document["hanging"]) == document["knobs"]:
        yield f"{document['space']}: {knobs}, of continuous values: {continuous}"
    else:
        combinations = say_count(document["cartesian"], "combination")
        yield f"{document['space']}: {knobs}, {combinations}, {feasible} feasible"
        if continuous:
            yield f"  continuous beside them: {continuous}"
    if hanging:
        yield f"  not counted, since a continuous knob decides whether it is there: {hanging}"


def _say_constraints(document: dict[str, Any]) -> Iterator[str]:
    for row in document["constraints"]:
        if row["removes"] is None:
            share = "a share" if row["share"] is None else _share(row["share"])
            yield f"  removes {share:>15}  of random draws  {row['rule']}"
            continue
        removes = _count(row["removes"], row["removes_between"])
        alone = _count(row["only_this_one"], row["only_this_one_between"])
        also = f"({alone} of them alone)  " if row["removes"] else ""
        yield f"  removes {removes:>15}  {also}{row['rule']}"
    if document["uncounted"]:
        yield f"  its {document['uncounted']:,} constraints are too many to say what each removes"


def _say_knobs(document: dict[str, Any]) -> Iterator[str]:
    """What is odd about single knobs."""
    for row in document["never"]:
        facts = ", ".join(f"{name} is {value!r}" for name, value in row["facts"].items())
        yield f"  {row['knob']} never exists here: {row['when']}, but {facts}"
    for row in document["absent"]:
        yield f"  {row['knob']} exists in no configuration: nothing feasible has {row['when']}"
    for row in document["steep"]:
        ends = " to ".join(say_value(row[end], "", 3) for end in ("low", "high"))
        yield (
            f"  {row['knob']} goes from {ends} on a linear scale, so that nine in ten draws are above"
            f" {say_value(row['tenth'], '', 2)}: where ratios matter write scale: log"
        )
    for row in document["left_empty"]:
        yield (
            f"  where {row['knob']} does not exist, '{row['option']}' stands without a value in a text of the"
            " command: an argument, a variable or a line of its own is left out then"
        )


def _say_first(first: dict[str, Any]) -> Iterator[str]:
    given, not_tried = first["given"], first["passed_over"]
    if given:
        yield f"  {given - len(not_tried)} of {say_count(given, 'configuration')} to try first"
    yield from (f"  {why}" for why in not_tried)


def say_time(time: dict[str, Any]) -> Iterator[str]:
    """How long a search may take."""
    given, worst = time["budget"], time["worst"]
    if given is not None:
        yield f"  {say_given(time, 'the finalists are measured again')}"
    if time["forecast"] is not None:
        yield from _say_forecast(time["forecast"], given)
    elif worst is not None and (given is None or worst < given):
        yield (
            f"  no earlier trial to judge the time by: at worst it takes {say_seconds(worst)},"
            " if each trial runs to its limits"
        )


def say_given(time: dict[str, Any], again: str, over: str = "") -> str:
    """How long it searches, and what comes ``again`` after that."""
    given = " ".join(filter(None, ["the search is given", say_seconds(time["budget"]), over]))
    if not time["finale"]:
        return given
    about = f"about {say_seconds(time['finale'])}, or more where runs are slow or noisy"
    return f"{given}; then {again}, which takes {about}"


def _say_forecast(forecast: dict[str, Any], given: float | None) -> Iterator[str]:
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
