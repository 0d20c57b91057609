"""``autotune search``: run the loop, draw its progress, print the defended winner."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from autotune.cli.codes import DONE, INTERRUPTED, NOTHING_SUCCEEDED
from autotune.cli.completion import spaces, strategies
from autotune.cli.options import (
    Duration,
    as_argument,
    echo,
    find_space,
    json_option,
    print_json,
    same_store,
    store_option,
    workload_option,
)
from autotune.cli.silence import READING_A_SPACE, said_if_long

if TYPE_CHECKING:
    from autotune.session.families.many import ManySession
    from autotune.session.families.result import ManyResult
    from autotune.session.result import Result
    from autotune.session.session import Session

WORKING_OUT = "working out what the constraints leave: that may take minutes, and Ctrl-C ends it"

ENDS_CLEANLY = "this ends the search cleanly; once more to end it at once"
CUT_SHORT = "what was measured again is kept, and the same command goes on with it"


@click.command("search")
@click.argument("space", shell_complete=spaces)
@click.option("--trials", type=click.IntRange(1), help="Total number of trials, over all workloads.")
@click.option("--time", "seconds", type=Duration(), help="Total time of searching: 90s, 10m, 1h30m.")
@click.option("--patience", type=click.IntRange(1), help="Stop after this many trials without improvement.")
@click.option("--target", type=float, help="Stop once a trial is as good as this, in the unit of the goal.")
@click.option(
    "--strategy",
    help="How to choose trials: auto, bayes, random, grid, evolution, optuna-tpe ...",
    shell_complete=strategies,
)
@click.option("--seed", type=click.IntRange(0), help="Seed of the strategy.")
@workload_option
@click.option("--fresh", is_flag=True, help="Begin a new study instead of going on with the last one.")
@click.option("--no-cache", is_flag=True, help="Compile everything anew; keep nothing for other searches.")
@store_option
@json_option
def command(
    space: str,
    trials: int | None,
    seconds: float | None,
    patience: int | None,
    target: float | None,
    strategy: str | None,
    seed: int | None,
    facts: tuple[str, ...],
    fresh: bool,
    no_cache: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Search SPACE, a space.yaml or the name of a ready space, and defend the winner.

    An interrupted search goes on where it stood; nothing is measured twice. Ctrl-C ends the search
    and measures the finalists again, a second Ctrl-C (or one while they are measured) ends at once.
    """
    from autotune.cli.progress import make_progress
    from autotune.session.api import open_many, open_session
    from autotune.session.opening.loading import load_family
    from autotune.session.opening.overrides import Overrides
    from autotune.space.reading.given_facts import read_given_facts
    from autotune.store.store import Store

    with said_if_long(READING_A_SPACE, quiet=as_json):
        overrides = Overrides(
            trials=trials, time=seconds, patience=patience, target=target, strategy=strategy, seed=seed
        )
        family = load_family(find_space(space), overrides, workload=read_given_facts(facts))
    with said_if_long(WORKING_OUT, quiet=as_json):
        for spec in family.specs:
            bool(spec.space.feasible)  # here Ctrl-C ends it at once; in a session, only after it is done
    if family.several:
        with Store.open(store) as opened, make_progress(quiet=as_json) as progress:
            many = open_many(family, opened, fresh=fresh, cache=not no_cache, progress=progress)
            with interruptible(many):
                found = many.run()
        _tell_many(found, store, as_json)
        return _exit_code(many.stopped, found.succeeded)
    [spec] = family.specs
    with Store.open(store) as opened, make_progress(quiet=as_json) as progress:
        session = open_session(spec, opened, fresh=fresh, cache=not no_cache, progress=progress)
        with interruptible(session):
            result = session.run()
    if as_json:
        print_json({**result.to_document(), **_unstated(result)})
    else:
        from autotune.report.words.summary import summarize

        again = as_argument(space) + "".join(f" --workload {shlex.quote(fact)}" for fact in facts)
        options = {"space": again, "program": _program(), "store_option": same_store(store)}
        echo(summarize(result, **options, budget=spec.budget))
    return _exit_code(session.stopped, result.best is not None)


def _tell_many(result: ManyResult, store: str | None, as_json: bool) -> None:
    if as_json:
        document = result.to_document()
        pairs = zip(document["workloads"], result.results, strict=True)
        print_json({**document, "workloads": [{**one, **_unstated(own)} for one, own in pairs]})
    else:
        from autotune.report.words.shapes import summarize_many

        echo(summarize_many(result, program=_program(), store_option=same_store(store)))


def _unstated(result: Result) -> dict[str, object]:
    """The part of a document on rules that the space seems to lack."""
    from autotune.report.unstated_rules import unstated_rules_of

    return {"unstated_rules": [asdict(rule) for rule in unstated_rules_of(result.study, result.trials)]}


def _exit_code(stopped: bool, succeeded: bool) -> int:
    if stopped:
        return INTERRUPTED
    return DONE if succeeded else NOTHING_SUCCEEDED


@contextmanager
def interruptible(session: Session | ManySession) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) asks the session to end; the next one ends it at once.

    While finalists are measured again, which may take minutes, the first one ends it at once as well: the
    search is over, and what was read is kept. A strategy that is choosing is interrupted, since in a tight
    space that may take half a minute.
    """
    from autotune.session.session import AskInterrupted

    def handle(number: int, frame: FrameType | None) -> None:
        again = session.stopped
        session.stop()
        if again:
            raise KeyboardInterrupt
        said = CUT_SHORT if session.measuring_again else ENDS_CLEANLY
        with suppress(OSError, RuntimeError):  # RuntimeError: the signal came during a write to stderr
            click.echo(f"\ninterrupted: {said}", err=True)
        if session.measuring_again:
            raise KeyboardInterrupt
        if session.asking:
            raise AskInterrupted

    earlier = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _program() -> str:
    """How to call this program again: ``autotune`` if the shell finds it by that name, or else its path."""
    found = shutil.which("autotune")
    called = Path(sys.argv[0])
    if called.name != "autotune":
        python = Path(sys.executable)
        known = shutil.which(python.name)
        return f"{python.name if known and Path(known) == python else shlex.quote(str(python))} -m autotune"
    same = found and Path(found).resolve() == called.resolve()
    return "autotune" if same else shlex.quote(str(called))
