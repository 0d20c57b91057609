"""``autotune derive``: do the proposals of a study follow from its record?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.codes import DOES_NOT_HOLD, DONE
from autotune.cli.options import echo, json_option, print_json, store_option, study_argument
from autotune.cli.silence import said_if_long
from autotune.report.words.titled import titled

if TYPE_CHECKING:
    from autotune.session.reproduction.derivation import Departure, Derivation

DERIVING = "asking the strategy for all proposals again, which takes as long as it did then: Ctrl-C ends it"


@click.command("derive")
@study_argument()
@store_option
@json_option
def command(study: str | None, store: str | None, as_json: bool) -> int:
    """Derive every proposal of a study again from what is stored, and compare it with the recorded one.

    The strategy is made anew, told what it had been told at each ask, and asked. Nothing is measured and
    nothing is written. The exit code is 4 where a proposal or its reason does not follow.
    """
    from autotune.session.reproduction.derivation import derive
    from autotune.store.store import Store

    with said_if_long(DERIVING, quiet=as_json), Store.open(store, readonly=True) as opened:
        derivation = derive(opened, opened.study(study))
    if as_json:
        print_json(derivation.to_document())
    else:
        echo(say(derivation))
    return DONE if derivation.follows else DOES_NOT_HOLD


def say(derivation: Derivation) -> str:
    """The answer in words: that all proposals follow, or the first one that does not."""
    from autotune.report.numbers import say_count

    label, departure = derivation.study.label, derivation.departure
    if not derivation.compared:
        lines = [f"{label}: it has no proposal that could be derived"]
    elif departure is None:
        every = "all " if derivation.compared > 1 else ""
        lines = [f"{label}: {every}{_follow(derivation.compared)} from the record"]
    else:
        lines = [f"{label}: trial {departure.trial} does not follow from the record", *_departure(departure)]
        lines += titled("likely", *derivation.causes)
        before = _follow(derivation.compared - 1)
        lines += titled("before it", f"{before}; those after it were not compared")
    searches, asks = say_count(derivation.sessions, "search", "searches"), say_count(derivation.asks, "ask")
    lines.append(f"  {searches}, {asks}, up to {say_count(derivation.most_in_flight, 'trial')} in flight")
    if derivation.unrecorded:
        lines.append(
            f"  taken as given: {say_count(derivation.unrecorded, 'trial')} of an older autotune, which did"
            " not write down what its strategy knew"
        )
    return "\n".join(lines)


def _follow(proposals: int) -> str:
    from autotune.report.numbers import say_count

    return f"{say_count(proposals, 'proposal')} {'follows' if proposals == 1 else 'follow'}"


def _departure(departure: Departure) -> list[str]:
    """The recorded proposal beside the derived one; if only their reasons differ, what differs in them."""
    proposed, follows = departure.proposed, departure.follows
    lines = titled("what", f"{departure.message} (search {departure.session}, ask {departure.ask})")
    if proposed is None or follows is None or proposed["configuration"] != follows["configuration"]:
        return [*lines, *titled("proposed", _knobs(proposed)), *titled("follows", _knobs(follows))]
    one, other = proposed["reason"], follows["reason"]
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    recorded = ", ".join(f"{name} {one[name]}" for name in names if name in one)
    derived = ", ".join(f"{name} {other[name]}" for name in names if name in other)
    return [*lines, *titled("recorded", recorded), *titled("follows", derived)]


def _knobs(proposal: Mapping[str, Any] | None) -> str:
    from autotune.report.words.summary import say_knob

    if proposal is None:
        return "nothing"
    return ", ".join(f"{name} = {say_knob(value)}" for name, value in proposal["configuration"].items())
