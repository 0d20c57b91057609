"""In the worker: makes the objective, answers one request after another, and tidies up after each."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

from autotune.errors import InputError
from autotune.measure.baselines import baselines_of
from autotune.measure.forked import forks_end_here
from autotune.measure.loading.importing import keep_importable
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Baseline, Objective
from autotune.measure.outcome import Report
from autotune.measure.own_folder import own_folder
from autotune.measure.phases.runner import Runner
from autotune.measure.reports import Curve, Reporter
from autotune.measure.workers import messages as m
from autotune.measure.workers.channel import BlockingChannel, BrokenChannel
from autotune.measure.workers.notes import SharedNotes
from autotune.measure.workers.residue import Residue
from autotune.measure.workers.surroundings import Surroundings
from autotune.space.configuration import Configuration
from autotune.space.spec import PythonObjective


def answer_requests(channel: BlockingChannel, notes: SharedNotes) -> None:
    """Make the objective that the first message asks for, and serve it until the session closes."""
    setup: m.Setup = channel.receive()
    if setup.cap is not None:
        setup.cap.enter()
    notes.clear()
    try:
        objective, baselines = _made(setup)
        runner = Runner(
            objective,
            setup.metrics,
            setup.settings,
            notes,
            own_process=True,
            curve=setup.curve,
            share=setup.share,
        )
    except InputError as error:
        channel.send(m.Refused(error.problems))
        return
    server = Server(runner, setup, channel)
    if setup.repeats:
        runner.rehearse()
    checks_ahead = objective.prepares and objective.checks_ahead
    stands_by = setup.stands_by and runner.stands_by
    channel.send(m.Ready(objective.prepares, checks_ahead, baselines, stands_by))
    if stands_by:
        server.stand_by()
    while True:
        try:
            request = channel.receive()
        except BrokenChannel:
            return  # the session is done with us
        notes.clear()
        answer = server.answer(request)
        channel.send(replace(answer, leftovers=server.tidy_up(request)))


def _made(setup: m.Setup) -> tuple[Objective, tuple[Baseline, ...]]:
    """The objective and its baselines; :class:`InputError` where it cannot be used."""
    with forks_end_here():
        if isinstance(setup.objective, PythonObjective):
            keep_importable(setup.objective, setup.context.cache / "modules")
        objective = load_objective(setup.objective, setup.context, setup.metrics, setup.knobs)
        return objective, baselines_of(objective)


class Server:
    """Answers requests with what the runner finds, and tidies up after each."""

    def __init__(self, runner: Runner, setup: m.Setup, channel: BlockingChannel) -> None:
        self._runner = runner
        self._channel = channel
        self._scratch = setup.context.cache
        self._final = not setup.repeats
        self._surroundings = Surroundings(setup.cores)
        self._cap = setup.cap.bytes if setup.cap is not None else None
        self._residue = Residue(self._cap)

    def stand_by(self) -> None:
        """Let the objective stand by. What it starts and opens there serves all trials and is left alone."""
        self._runner.stand_by(final=self._final)
        self._surroundings.restore()
        self._residue = Residue(self._cap)
        self._channel.send(m.StoodBy())

    def answer(self, request: m.Request) -> m.Answer:
        runner = self._runner
        match request:
            case m.Prepare(configuration):
                outcome, prepared = runner.prepare(configuration, _seal)
                return m.Prepared(outcome, prepared)
            case m.Check(configuration, prepared, seed):
                return m.Checked(runner.check(partial(self._unseal, prepared, configuration), seed))
            case m.Measure(configuration, prepared, seed, seconds, incumbent, curve, checked, paid):
                reporter = self._reporter(curve, configuration)
                unseal = partial(self._unseal, prepared, configuration)
                outcome = runner.measure(unseal, seed, incumbent, seconds, reporter, checked, paid)
                return m.Measured(outcome)
            case m.Enter(what, prepared, seed, warm_up):
                unseal = partial(self._unseal, prepared, what)
                entered = runner.enter(what, unseal, seed, warm_up=warm_up)
                return m.Measured(entered)
            case m.Read(seed):
                self._residue.go_on()
                return m.Measured(runner.read(seed))

    def _unseal(self, prepared: bytes | None, what: Configuration | Baseline) -> object:
        """What was prepared; it is prepared now if the source has changed since, and prepared nothing."""
        if prepared is not None:
            return pickle.loads(prepared)
        return self._runner.objective.prepare(what) if isinstance(what, Configuration) else what

    def _reporter(self, curve: Curve | None, configuration: Configuration) -> Reporter | None:
        if curve is None:
            return None
        return Reporter(curve, self._hear, own_folder(self._scratch, configuration), thinned=True)

    def _hear(self, report: Report, waits: bool) -> str:
        """Send a report on; where the run waits, wait for the decision of the session."""
        self._channel.send(m.Reported(report, waits))
        if not waits:
            return ""
        decided: m.Decided = self._channel.receive()
        return decided.why

    def tidy_up(self, request: m.Request) -> str:
        """Undo what one configuration could leave to the next. Returns why only a new process can, if so."""
        self._surroundings.restore()
        standing = self._runner.objective.standing()
        if isinstance(request, m.Enter | m.Read):  # it will be read again in this process, after others
            self._residue.stop(standing)
            return ""
        return self._residue.found(type(request).__name__, standing)


def _seal(prepared: object) -> bytes:
    try:
        return pickle.dumps(prepared, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        what = type(prepared).__name__
        raise TypeError(
            f"prepare() returned a {what}, which cannot be pickled ({error}): return a path, say,"
            " and open it in load()"
        ) from error
