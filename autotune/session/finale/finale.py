"""The finale: finalists, default and baselines measured again, interleaved, on fresh inputs.

The lowest value of a search is as often a lucky reading as a good configuration. So the best few are read
again in rounds. In each round every contender is read once, in a new random order, so that drift of the
machine affects all alike. The answer is a ratio with a confidence interval, and 'no better than the
default' is an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from autotune.measure.outcome import Estimate, Outcome
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.disturbed import scattered, usual_stall, usual_wait
from autotune.session.finale.drift import drift, shift
from autotune.session.finale.fresh_processes import (
    ROUNDS,
    FreshRuns,
    Plan,
    read_in_fresh_processes,
    say_warming,
)
from autotune.session.finale.interleaved import failed, outcomes_of, read_again
from autotune.session.finale.kept_readings import KeptReadings, take_up
from autotune.session.finale.rounds import ReadingSeconds, Rounds
from autotune.session.finale.stakes import Stakes
from autotune.session.finale.verdict import Standing, after_fresh_runs, default_stays, judge
from autotune.session.ledger import Ledger
from autotune.session.progress import Progress
from autotune.session.same_code import code_of
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec, is_speed
from autotune.status import Status
from autotune.store.records import Place, TrialRecord

IN_ONE_PROCESS = "each was read in one process: what differs from process to process is not in the interval"


EDITED = "the objective was edited meanwhile: readings taken after that may be of the new source"


def defend(
    executor: Executor,
    ledger: Ledger,
    progress: Progress,
    reason: str,
    guests: Mapping[str, Configuration] = MappingProxyType({}),
    *,
    of_several: bool = False,
    confirms: bool = True,
) -> None:
    """Measure the finalists again and store the verdict with every reading.

    ``guests`` are configurations that others have chosen, by a label that says who: they are read in the
    same rounds, and one of them may win. ``of_several``: this is the finale of one of several workloads,
    whose winners are measured on all workloads afterwards. Then the default is measured even without
    finalists, since it has a column in their matrix, and a win is not confirmed in fresh processes, since
    it will be afterwards. ``confirms``: whether a win is otherwise confirmed in fresh processes.
    """
    spec = ledger.spec
    seconds = ReadingSeconds.of(spec, succeeded(ledger))
    asked = _with_guests(_contenders(executor, ledger), guests)
    if not of_several and all(contender.label == DEFAULT for contender in asked):
        return
    rounds = Rounds.of(spec, ledger.spent.seconds)
    few = _round([*_entering(asked), *_optional(asked)[:1]], seconds)
    rounds = rounds.facing(_stakes(ledger, asked), few)
    contenders = affordable(asked, rounds, seconds)
    if len(contenders) < len(asked):
        progress.note(
            f"there is time to measure {sum(c.finalist for c in contenders)} of the best again, not"
            f" {sum(c.finalist for c in asked)}: {rounds.fewest} rounds of"
            f" {_share(asked, rounds, seconds):.3g} s do not fit into {rounds.seconds:.3g} s"
        )
    said = {"reason": reason}
    confirms = confirms and not of_several
    remeasure(executor, ledger, progress, contenders, seconds, said, confirms=confirms)


def affordable(contenders: Sequence[Contender], rounds: Rounds, seconds: ReadingSeconds) -> list[Contender]:
    """The contenders, without the last finalists if not all fit into the time; the first one always stays."""
    entering, optional = _entering(contenders), _optional(contenders)
    room = rounds.room(_share(entering, rounds, seconds))
    while optional and _share([*entering, *optional], rounds, seconds) > room:
        optional.pop()
    return [c for c in contenders if c in entering or c in optional]


def _optional(contenders: Sequence[Contender]) -> list[Contender]:
    """The finalists after the first one."""
    return [c for c in contenders if c.finalist][1:]


def _entering(contenders: Sequence[Contender]) -> list[Contender]:
    """Those that are read in any case."""
    return [c for c in contenders if c not in _optional(contenders)]


def _share(contenders: Sequence[Contender], rounds: Rounds, seconds: ReadingSeconds) -> float:
    """Seconds of one round if there are the fewest rounds, with its share of the time that starting takes."""
    return _round(contenders, seconds) + len(contenders) * seconds.entering / rounds.fewest


def foreseen(contenders: Sequence[Contender], rounds: Rounds, seconds: ReadingSeconds) -> float:
    """About how many seconds it takes to read the contenders in ``rounds``, with their start."""
    return len(contenders) * seconds.entering + rounds.longest(_round(contenders, seconds))


def longest_silence(contenders: Sequence[Contender], seconds: ReadingSeconds) -> float:
    """The most seconds in which nothing is written: twice those that a run in fresh processes should take.

    Nothing of such a run is written before its end, nor of the first round before all have entered.
    """
    return 2 * (len(contenders) * seconds.entering + (1 + ROUNDS.most) * _round(contenders, seconds))


def _round(contenders: Sequence[Contender], seconds: ReadingSeconds) -> float:
    """About how many seconds one round of all contenders takes."""
    return sum(seconds(contender.configuration) for contender in contenders)


def remeasure(
    executor: Executor,
    ledger: Ledger,
    progress: Progress,
    contenders: Sequence[Contender],
    seconds: ReadingSeconds,
    said: Mapping[str, object],
    *,
    confirms: bool = True,
) -> None:
    """Read the contenders in rounds, and if it ``confirms``, the winner in fresh processes too.

    Stores the readings, and the verdict, to whose document ``said`` is added.
    """
    spec, study, knew = ledger.spec, ledger.study, len(ledger.strategy.told)
    place = Place(study.record.id, ledger.session_id, study.segment.id)
    once = _round(contenders, seconds)
    limits = Rounds.of(spec, ledger.spent.seconds).facing(_stakes(ledger, contenders), once)
    limits = limits.among(len(contenders), once)
    progress.defending(tuple(c.label for c in contenders), foreseen(contenders, limits, seconds))
    if before := take_up(ledger.store, place, contenders):
        progress.note(f"the finale goes on where it was cut short, with {before} readings that were taken")
    silence = longest_silence(contenders, seconds)
    kept = KeptReadings(ledger.store, place, contenders, knew, longest_silence=silence)
    try:
        rounds, outcomes = read_again(spec, executor, contenders, limits, after_reading=kept.keep)
        verdict = judge(spec, [_standing(spec, c, outcomes[c.label]) for c in contenders])
        if executor.long_lived and _is_a_win(verdict):
            fresh = FreshRuns()
            if confirms:
                plan = Plan.of(_compared(verdict, contenders), seconds, limits.seconds)
                if plan.runs:
                    progress.confirming(plan.labels, plan.runs, plan.seconds)
                fresh = read_in_fresh_processes(spec, executor, plan, rounds, kept.keep)
            verdict = _confirmed(spec, verdict, contenders, fresh)
    except BaseException:  # also an interrupt: what was read so far is kept
        kept.finish({c.label: _cut_short(c) for c in contenders}, ledger.environment_hash)
        raise
    progress.defended(rounds)
    if executor.edited:
        verdict["remark"] = "; ".join(filter(None, [str(verdict["remark"]), EDITED]))
    # The default alone may have waited, since its readings are long: then the speed-up is too large.
    compared = _compared(verdict, contenders) if "label" in verdict else []
    noisy = [scattered(contender.readings, spec.goals[0]) for contender in compared]
    document = verdict | {
        "rounds": rounds,
        "waited": max(map(usual_wait, noisy), default=0.0),
        "stalled": max(map(usual_stall, noisy), default=0.0),
        **_drift(ledger, contenders, outcomes, str(verdict.get("label", ""))),
        **said,
        "told": knew,
        "outcomes": {label: [str(o.status), o.message] for label, o in outcomes.items()},
    }
    kept.finish(outcomes_of(spec, contenders), ledger.environment_hash)
    if any(contender.readings for contender in contenders):
        ledger.take_source()
    ledger.store.save_verdict(study.record.id, ledger.session_id, document)


def _is_a_win(verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict says that a configuration is better than the default."""
    gain = verdict.get("speedup") or verdict.get("gain")
    return gain is not None and not verdict["is_default"]


def _compared(verdict: Mapping[str, Any], contenders: Sequence[Contender]) -> list[Contender]:
    """Whose readings the answer is made of: the default, the winner, and the strongest baseline, if any."""
    strongest = min(verdict["baselines"], key=lambda b: b["estimate"], default={"against": ""})
    labels = (DEFAULT, verdict["label"], strongest["against"])
    return [contender for label in labels for contender in contenders if contender.label == label]


def _confirmed(
    spec: StudySpec, verdict: Mapping[str, Any], contenders: Sequence[Contender], fresh: FreshRuns
) -> dict[str, Any]:
    """The ``verdict`` with the gain measured in fresh processes, if there were enough runs of them."""
    outcomes = outcomes_of(spec, contenders)
    standings = [_standing(spec, c, outcomes[c.label]) for c in contenders]
    label, won = verdict["label"], outcomes[verdict["label"]]
    if fresh.failed == label:
        return default_stays({**verdict, "baselines": []}, standings, f"{label} {fresh.how}")
    if won.status is not Status.OK:  # past a bound, with the readings of the fresh processes
        why = f"with other processes {label} is {won.status}: {won.message}"
        return default_stays({**verdict, "baselines": []}, standings, why)
    confirmed = after_fresh_runs(spec, verdict, fresh.runs, standings) if fresh.enough else dict(verdict)
    doubt = f"{fresh.failed} {fresh.how}" if fresh.failed else "" if fresh.enough else IN_ONE_PROCESS
    if confirmed["is_default"]:
        overruled = next(c for c in contenders if c.label == label)
        doubt = doubt or say_warming(spec.goals[0], overruled.readings)
    return confirmed | {"remark": "; ".join(filter(None, [str(confirmed["remark"]), doubt]))}


def _drift(
    ledger: Ledger, contenders: Sequence[Contender], outcomes: Mapping[str, Outcome], winner: str
) -> dict[str, float]:
    """The factors by which the values differ from those of the search: of all, and of default to winner."""
    own = {c.label: c.configuration.hash for c in contenders if c.configuration is not None}
    searched = _searched(ledger, contenders)
    known = {label: outcomes[label].metrics for label in own if ledger.metric.name in outcomes[label].metrics}
    again = {own[label]: metrics[ledger.metric.name].value for label, metrics in known.items()}
    moved = 1.0
    # Losses differ by so much from training to training, whatever the machine does.
    if is_speed(ledger.metric.goal, ledger.metric.unit):
        pair = own.get(DEFAULT, ""), own.get(winner, "")
        moved = shift(searched, again, *pair, minimize=ledger.metric.goal == "minimize")
    return {"drift": drift({own: was.value for own, was in searched.items()}, again), "shift": moved}


def _stakes(ledger: Ledger, contenders: Sequence[Contender]) -> Stakes:
    searched = _searched(ledger, contenders)
    own = [c.configuration.hash for c in contenders if c.finalist and c.configuration is not None]
    default = next((c.configuration.hash for c in contenders if c.label == DEFAULT and c.configuration), "")
    finalists = [searched[one] for one in own if one in searched]
    return Stakes.of(searched.get(default), finalists, ledger.metric.sign)


def _searched(ledger: Ledger, contenders: Sequence[Contender]) -> dict[str, Estimate]:
    """What the search measured of the contenders, by the hash of the configuration."""
    study, goal = ledger.study.record.id, ledger.metric.name
    asked = [c.configuration.hash for c in contenders if c.configuration is not None]
    numbers = ledger.store.numbers_of(study, asked).values()
    trials = ledger.store.numbered(study, [*numbers])
    return {t.hash: t.metrics[goal] for t in trials if t.status is Status.OK and goal in t.metrics}


def succeeded(ledger: Ledger) -> list[TrialRecord]:
    """The search trials in the present space that succeeded, sorted by their values, the best first."""
    trials = ledger.store.trials(ledger.study.record.id, purpose="search", status=Status.OK)
    usable = [t for t in trials if ledger.metric.name in t.metrics and t.configuration in ledger.spec.space]
    return sorted(usable, key=lambda t: (ledger.metric.sign * t.metrics[ledger.metric.name].value, t.number))


def best_trials(ledger: Ledger) -> list[TrialRecord]:
    """The trials of a search in the order in which they become finalists.

    The default is left out, and so are all but one of those with the same code.
    """
    trials = succeeded(ledger)
    default = ledger.spec.space.feasible_default()
    taken = {default.hash} if default is not None else set()
    others = in_turn([t for t in trials if t.hash not in taken], ledger.expected())
    return _without_same_code(others, [t for t in trials if t.hash in taken])


def _contenders(executor: Executor, ledger: Ledger) -> list[Contender]:
    """The default first, then the best trials, then the baselines that run here."""
    spec = ledger.spec
    default = spec.space.feasible_default()
    finalists = [
        Contender(f"trial {t.number}", t.configuration, finalist=True)
        for t in best_trials(ledger)[: spec.measure.finalists]
    ]
    baselines = [Contender(b.name, b) for b in executor.baselines()]
    return [*([Contender(DEFAULT, default)] if default is not None else []), *finalists, *baselines]


def in_turn(trials: Sequence[TrialRecord], expected: Mapping[str, float]) -> list[TrialRecord]:
    """The trial with the best value, then those ``expected`` to be best, then the rest by their values.

    ``trials`` are sorted by their values, the best first. If readings are noisy, the lowest of many was luck.
    """
    return [*trials[:1], *sorted(trials[1:], key=lambda t: expected.get(t.hash, math.inf))]


def _with_guests(contenders: Sequence[Contender], guests: Mapping[str, Configuration]) -> list[Contender]:
    """The contenders, with the guests that are not among them already before the baselines."""
    taken = {c.configuration.hash for c in contenders if c.configuration}
    own = [c for c in contenders if c.configuration is not None]
    for label, configuration in guests.items():
        if configuration.hash not in taken:
            own.append(Contender(label, configuration))
            taken.add(configuration.hash)
    return [*own, *(c for c in contenders if c.configuration is None)]


def _without_same_code(trials: Sequence[TrialRecord], taken: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The trials whose code differs from that of all trials before them and of ``taken``."""
    seen = {code_of(trial) for trial in taken}
    different = []
    for trial in trials:
        code = code_of(trial)
        if not code or code not in seen:
            different.append(trial)
        seen.add(code)
    return different


def _cut_short(contender: Contender) -> Outcome:
    """The outcome of a contender of a finale that was cut short: its failure, or else ``lost``."""
    lost = Outcome(Status.LOST, message="the re-measurement was cut short")
    return failed(contender, contender.failure or lost)


def _standing(spec: StudySpec, contender: Contender, outcome: Outcome) -> Standing:
    configuration = contender.configuration
    default = contender.label == DEFAULT
    distance = 0.0
    if configuration is not None and not default:
        today = spec.space.feasible_default()
        distance = spec.space.distance(today, configuration) if today is not None else 1.0
    usable = outcome.status is Status.OK
    return Standing(
        label=contender.label,
        configuration=configuration,
        is_default=default,
        values=tuple(contender.values(spec.goals[0].name)) if usable else (),
        metrics=outcome.metrics if usable else {},
        distance=distance,
    )
