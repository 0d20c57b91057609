"""``autotune why``: the story of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.references import find_trial
from autotune.cli.silence import said_if_long
from autotune.report.words.titled import titled

if TYPE_CHECKING:
    from autotune.report.words.story import Neighbour, Story
    from autotune.store.records import TrialRecord

MOST_DIFFERENCES = 4
"""How many knobs are named in which two trials differ."""


@click.command("why")
@click.argument("trial", metavar="TRIAL")
@study_option("Then TRIAL is the trial's number in this study.")
@store_option
@json_option
def command(trial: str, study: str | None, store: str | None, as_json: bool) -> int:
    """Tell why a trial was tried: what was known then, what was expected, and what came of it.

    TRIAL is the trial's id, STUDY:NUMBER, or its number with --study.
    """
    from autotune.report.words.story import tell
    from autotune.store.store import Store

    reading = "reading all that was known and what came of it: Ctrl-C ends it"
    with said_if_long(reading, quiet=as_json), Store.open(store, readonly=True) as opened:
        story = tell(opened, find_trial(opened, trial, study))
    if as_json:
        print_json(document(story))
    else:
        echo(say(story))
    return 0


def document(story: Story) -> dict[str, Any]:
    """The story as JSON."""
    from autotune.space.configuration import plain

    trial, knew = story.trial, story.knew
    return {
        "study": story.study.name,
        "study_id": story.study.id,
        "trial": trial.number,
        "id": trial.id,
        "purpose": trial.purpose,
        "metric": story.goal.name,
        "configuration": plain(trial.configuration),
        "because": list(story.reasons.because),
        "reason": dict(trial.reason),
        "knew": None
        if knew is None
        else {
            "session": knew.session,
            "ask": knew.ask,
            "results": knew.results,
            "proposed": knew.proposed,
            "in_flight": knew.in_flight,
            "paused": knew.paused,
            "incumbent": None if knew.incumbent is None else _trial(story, knew.incumbent),
            "neighbours": [
                {**_trial(story, near.trial), "distance": near.distance, "differs": dict(near.differs)}
                for near in knew.neighbours
            ],
        },
        "leaned_on": [_trial(story, other) for other in story.leaned_on],
        "sources": dict(story.sources),
        "expectations": [{**asdict(one), "said": one.say()} for one in story.reasons.expected],
        "outcome": {**_trial(story, trial), "message": trial.message},
        "improved": story.improved,
        "gain": story.gain,
        "came_of_it": list(story.came_of_it),
        "again": [{**_trial(story, other), "purpose": other.purpose} for other in story.again],
    }


def _trial(story: Story, trial: TrialRecord) -> dict[str, Any]:
    metric = trial.metrics.get(story.goal.name)
    value = None if metric is None else metric.value
    return {"trial": trial.number, "id": trial.id, "status": str(trial.status), "value": value}


def say(story: Story) -> str:
    """The story in lines."""
    trial = story.trial
    label = "  (REPLAYED from a recording)" if story.study.replayed else ""
    lines = [f"trial {trial.number} of {story.study.label} (id {trial.id}){label}"]
    lines += titled("because", *story.reasons.because)
    lines += _known(story)
    lines += titled("leaned on", *(_value(story, other) for other in story.leaned_on))
    lines += titled("expected", *(expected.say() for expected in story.reasons.expected))
    lines += titled("came to", *_outcome(story))
    return "\n".join(lines)


def _known(story: Story) -> list[str]:
    from autotune.report.numbers import say_count
    from autotune.store.records import NO_ASK

    knew = story.knew
    if knew is None:
        return []
    results, flight = knew.results, knew.in_flight
    known = f"{say_count(results, 'result')}, and {say_count(flight, 'trial')} in flight"
    paused = f", {knew.paused} of them paused at a rung" if knew.paused else ""
    ask = "" if knew.ask == NO_ASK else f", ask {knew.ask}"
    said = [f"{known}{paused} (search {knew.session}{ask})"]
    if knew.incumbent is not None:
        said.append(f"the best then was {_value(story, knew.incumbent)}")
    elif results:
        said.append("nothing that succeeded")
    return [
        *titled("known then", *said),
        *titled("nearest", *(_neighbour(story, near) for near in knew.neighbours)),
    ]


def _neighbour(story: Story, near: Neighbour) -> str:
    return f"{_value(story, near.trial)}, {near.distance:.2g} away: {say_differences(near.differs)}"


def say_differences(differs: Mapping[str, tuple[object, object]]) -> str:
    """``tile 4 -> 8, layout row -> column``."""
    from autotune.report.text import one_line, side_by_side

    said = []
    for name, pair in differs.items():
        there, here = side_by_side(*pair, 40)
        said.append(f"{one_line(name)} {there} -> {here}")
    more = f" and {len(said) - MOST_DIFFERENCES} more" if len(said) > MOST_DIFFERENCES else ""
    return (", ".join(said[:MOST_DIFFERENCES]) or "the same") + more


def _outcome(story: Story) -> list[str]:
    from autotune.report.numbers import say_times
    from autotune.report.text import one_line

    trial = story.trial
    said = [_value(story, trial, named=False)]
    if trial.message.strip():
        said.append(one_line(trial.message))
    if story.improved is not None and story.knew is not None and story.knew.incumbent is not None:
        ratio = "" if story.gain is None else f", {say_times(story.gain)}"
        said.append(f"{'better' if story.improved else 'no better'} than the best known then{ratio}")
    if story.came_of_it:
        from autotune.report.words.story import DESCENDANTS

        shown = ", ".join(map(str, story.came_of_it[:DESCENDANTS]))
        more = " ..." if len(story.came_of_it) > DESCENDANTS else ""
        said.append(f"made from it: trial{'s' if len(story.came_of_it) > 1 else ''} {shown}{more}")
    if story.again:
        said.append("measured again: " + ", ".join(_value(story, other) for other in story.again[:4]))
    return said


def _value(story: Story, trial: TrialRecord, named: bool = True) -> str:
    """``trial 12, 4.12 ms``; with its status instead of the value if it failed."""
    from autotune.report.numbers import say_estimate

    name = f"trial {trial.number}, " if named else ""
    metric = trial.metrics.get(story.goal.name)
    if metric is None or trial.status.failed:
        return f"{name}{trial.status}"
    partly = "" if str(trial.status) == "ok" else f" ({trial.status})"
    return f"{name}{say_estimate(metric, story.goal.unit)}{partly}"
