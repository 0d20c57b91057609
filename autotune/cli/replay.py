"""``autotune replay``: does a trial come to the same, here and now?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from autotune.cli.codes import DOES_NOT_HOLD, DONE, NOTHING_SUCCEEDED
from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.references import find_trial
from autotune.cli.silence import said_if_long
from autotune.report.words.titled import titled, titled_beginning

if TYPE_CHECKING:
    from autotune.session.reproduction.replaying import Replay

MOST_CHANGES = 8
"""The most lines on what has changed; the JSON document has all."""

NOTHING_CHANGED = "nothing that is recorded has changed; perhaps other programs ran here, then or now"

MEASURING = "measuring it and the default again, in several processes: Ctrl-C ends it"


@click.command("replay")
@click.argument("trial", metavar="TRIAL")
@study_option("Then TRIAL is the trial's number in this study.")
@click.option(
    "--runs",
    type=click.IntRange(2, 100),
    help="In how many processes to measure it.  [default: 5; 3 for a training]",
)
@click.option("--frozen", is_flag=True, help="Measure the source kept in the store, not that of today.")
@click.option("--no-keep", is_flag=True, help="Do not store the readings.")
@store_option
@json_option
def command(
    trial: str,
    study: str | None,
    runs: int | None,
    frozen: bool,
    no_keep: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Measure a trial's configuration again, interleaved with the default, and compare with what is stored.

    TRIAL is the trial's id, STUDY:NUMBER, or its number with --study. The answer is 'agrees' (exit code 0),
    'differs' (4), 'cannot be told' or 'cannot be measured here' (3). The readings are stored; no search
    uses them. --frozen runs code from the store: use it only with a store that you trust.
    """
    from autotune.session.reproduction.replaying import replay
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        number = find_trial(opened, trial, study).id
    with said_if_long(MEASURING, quiet=as_json):
        answer = replay(store, number, frozen=frozen, keep=not no_keep, runs=runs)
    if as_json:
        print_json(answer.to_document())
    else:
        echo(say(answer))
    return {"agrees": DONE, "differs": DOES_NOT_HOLD}.get(answer.result.verdict, NOTHING_SUCCEEDED)


def say(answer: Replay) -> str:
    """The answer in lines."""
    from autotune.report.words.verdicts import say_result, say_rounds

    result = answer.result
    head = f"trial {answer.trial.number} of {answer.study.label}: {result.verdict}"
    lines = [f"{head}: {result.why}", *say_result(result)]
    lines += titled("likely", *answer.causes)
    lines += titled_beginning("changed", answer.changed, MOST_CHANGES)
    if result.verdict == "differs" and not answer.causes and not answer.changed:
        lines += titled("likely", NOTHING_CHANGED)
    if result.rounds:
        lines += titled("readings", f"{say_rounds(result)}, {answer.kept}")
    return "\n".join(lines)
