"""The contract of executors, for both kinds; then what only worker processes do."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, InputError
from autotune.measure.cores.turns import VARIABLE
from autotune.measure.facts import TIMELINE
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Baseline, Context
from autotune.measure.outcome import Estimate, Outcome
from autotune.measure.ownership import owned_name
from autotune.session.execution.choosing import make_executor
from autotune.session.execution.crew import SPARE
from autotune.session.execution.executor import Executor, Finished, Started, Ticket
from autotune.session.execution.inline import InlineExecutor
from autotune.session.execution.lane import find_lanes
from autotune.session.execution.workers import WorkerExecutor
from autotune.status import Status
from tests.session.execution.compiled import OBJECTIVE, SPACE, collect, rejecting_none, spec_in, submit


@pytest.fixture(params=["inline", "workers"])
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Executor]:
    spec = spec_in(tmp_path)
    made: Executor
    if request.param == "inline":
        context = Context({}, {}, tmp_path)
        made = InlineExecutor(spec, load_objective(spec.objective, context, spec.metrics))
    else:
        made = WorkerExecutor(spec, {})
    with closing(made):
        yield made


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[WorkerExecutor]:
    with closing(WorkerExecutor(spec_in(tmp_path), {}, prepare_workers=2)) as made:
        yield made


# -- the contract ------------------------------------------------------------------------------


def test_trials_begin_and_end(executor: Executor) -> None:
    started: list[int] = []
    outcomes: dict[int, Outcome] = {}
    for x in (3, 1, 2, 66):  # one after the other: what is worse than one beside it may be let go
        submit(executor, x)
        began, ended = collect(executor, 1)
        started += began
        outcomes |= ended
    assert started == [3, 1, 2, 66]
    for x in (1, 2, 3):
        assert outcomes[x].status == "ok" and x <= outcomes[x].metrics["time"].value <= x + 1e-3
        assert set(outcomes[x].phases) == {"prepare", "load", "check", "warmup", "measure"}
        assert outcomes[x].worker.startswith(os.uname().nodename)
    assert (outcomes[66].status, outcomes[66].phase, outcomes[66].message) == (
        "infeasible",
        "prepare",
        "66 is refused",
    )


def test_with_nothing_in_flight_there_is_nothing_to_wait_for(executor: Executor) -> None:
    start = time.monotonic()
    assert executor.poll(60) == []
    assert time.monotonic() - start < 30


def test_the_same_seed_draws_the_same_inputs(executor: Executor) -> None:
    readings = []
    for seed in (5, 5, 6):
        executor.submit(Ticket(seed, executor.spec.space.configuration({"x": 1}), seed))  # type: ignore[attr-defined]
        _, outcomes = collect(executor, 1)
        readings.append([r.value for r in outcomes[seed].readings if r.metric == "time"][:5])
    assert readings[0] == readings[1] != readings[2]


def test_the_incumbent_lets_a_hopeless_one_go(executor: Executor) -> None:
    executor.incumbent = Estimate(1.0, 0.9, 1.1, 10)
    submit(executor, 50, 1)
    _, outcomes = collect(executor, 2)
    assert outcomes[50].status == "pruned" and outcomes[50].metrics["time"].n < 9
    assert outcomes[1].status == "ok"


def test_what_is_cancelled_is_lost_and_the_executor_lives_on(executor: Executor) -> None:
    submit(executor, 1, 2, 3)
    executor.cancel()
    _, outcomes = collect(executor, 3)
    assert {str(outcome.status) for outcome in outcomes.values()} == {"lost"}
    submit(executor, 4)
    assert collect(executor, 1)[1][4].status == "ok"


def test_entrants_are_read_in_turn(executor: Executor) -> None:
    configuration = executor.spec.space.configuration({"x": 4})  # type: ignore[attr-defined]
    first, second = executor.entrants([configuration, Baseline("vendor")])
    for seed in range(3):
        for entrant, value in ((first, 4.0), (second, 9.0)):
            counted = [r for r in entrant.read(seed) if not r.discarded and r.metric == "time"]
            assert len(counted) == 1 and value <= counted[0].value <= value + 1e-3
    assert first.failure is None and second.failure is None
    for entrant in (first, second, first):
        entrant.close()


def test_an_entrant_that_fails_says_so(executor: Executor) -> None:
    configuration = executor.spec.space.configuration({"x": 66})  # type: ignore[attr-defined]
    refused, absent = executor.entrants([configuration, Baseline("absent")])
    assert refused.failure is not None and refused.failure.message == "66 is refused"
    assert absent.failure is not None and absent.failure.status == "infeasible"
    assert refused.read(0) == absent.read(0) == ()
    refused.close()
    absent.close()


def test_closing_twice_is_closing(executor: Executor) -> None:
    submit(executor, 1)
    executor.close()
    executor.close()


# -- worker processes --------------------------------------------------------------------------


def test_what_an_entrant_printed_is_kept_with_why_it_failed(tmp_path: Path) -> None:
    """Beside a traceback it was dropped, in a finale only."""
    fails = OBJECTIVE.replace(
        'return {"error"', 'print("the probe has", 6 * 7); os.stat("gone")\n        return {"error"'
    )
    with closing(WorkerExecutor(spec_in(tmp_path, fails), {})) as executor:
        [entrant] = executor.entrants([Baseline("vendor")])
    assert entrant.failure is not None and entrant.failure.worker
    assert "the probe has 42" in entrant.failure.stderr and "FileNotFoundError" in entrant.failure.stderr


def test_entrants_prepare_side_by_side_where_they_share_no_core(tmp_path: Path) -> None:
    """A pipe opens when somebody is at either end: each of the two opens one."""
    meets = """
        with open(self.context.cache / "pipe", "rw"[configuration["x"] - 1]):
            pass
"""
    objective = OBJECTIVE.replace("        library =", f"{meets}        library =", 1)
    spec = spec_in(tmp_path, objective, SPACE.replace("measure: {", "measure: {cores: 0, "))
    with closing(WorkerExecutor(spec, {}, prepare_workers=0)) as executor:
        os.mkfifo(executor._crew._factory._scratch[0] / "pipe")
        configurations = [spec.space.configuration({"x": x}) for x in (1, 2)]
        for entrant in executor.entrants(configurations):
            assert entrant.failure is None
            assert [r.value for r in entrant.read(0) if r.metric == "time"]


def test_there_is_work_for_all_of_them(tmp_path: Path) -> None:
    with closing(WorkerExecutor(rejecting_none(spec_in(tmp_path)), {}, prepare_workers=2)) as workers:
        assert workers.capacity == 3 + SPARE, "one measured, one for each preparer, and some that wait"
        submit(workers, *range(20))
        _, outcomes = collect(workers, 20)
    assert {str(outcome.status) for outcome in outcomes.values()} == {"ok"}
    assert len({outcome.worker for outcome in outcomes.values()}) == 1, "one measures at a time"


def test_who_drives_it_keeps_off_the_measuring_cores(workers: WorkerExecutor) -> None:
    before = os.sched_getaffinity(0)
    with workers.aside():
        assert os.sched_getaffinity(0) == set(workers.cores.preparing)
    assert os.sched_getaffinity(0) == before


def test_a_measurement_is_pinned_and_says_where(workers: WorkerExecutor) -> None:
    submit(workers, 1)
    _, outcomes = collect(workers, 1)
    assert outcomes[1].metrics["cores"].value == 1
    assert outcomes[1].facts["cores"] == list(workers.cores.measuring)


def test_a_function_needs_no_preparing_process(tmp_path: Path) -> None:
    space = SPACE.replace(":Compiled", ":measure")
    spec = spec_in(tmp_path, "def measure(x): return 1.0 + x", space)
    with closing(WorkerExecutor(spec, {})) as executor:
        assert executor.capacity == 2
        submit(executor, 1, 2)
        _, outcomes = collect(executor, 2)
        assert "prepare" not in outcomes[1].phases


@pytest.mark.parametrize(("more", "status"), [("other: {}", "pruned"), ("other: {goal: minimize}", "ok")])
def test_what_ended_just_now_is_the_best_before_the_session_has_said_so(
    tmp_path: Path, more: str, status: str
) -> None:
    """With several goals the slow one may be good in another way."""
    function = "import random\ndef f(x): return {'time': x + random.random() / 100, 'other': -x}"
    space = SPACE.replace(":Compiled", ":f").replace("error: {at_most: 0.1}", more)
    with closing(WorkerExecutor(spec_in(tmp_path, function, space), {})) as made:
        submit(made, 1, 98)
        _, outcomes = collect(made, 2)
    assert outcomes[1].status == "ok" and outcomes[98].status == status


def test_an_environment_reaches_its_baseline_only(workers: WorkerExecutor) -> None:
    vendor, tuned, _ = workers.baselines()
    for baseline, value in ((tuned, 3.0), (vendor, 9.0)):
        [entrant] = workers.entrants([baseline])
        assert entrant.failure is None
        assert [r.value // 1 for r in entrant.read(0) if r.metric == "time"][-1] == value
        entrant.close()


def test_giving_up_a_measurement_does_not_wait_for_it(workers: WorkerExecutor) -> None:
    submit(workers, 77)
    while not workers._crew.measurers[0].job:
        workers.poll(0.01)
    workers.cancel()
    assert collect(workers, 1)[1][77].status == "lost"


def test_a_worker_outlives_a_missed_bound_but_not_a_wrong_answer(tmp_path: Path) -> None:
    """What it loaded is kept where nothing says that its process is spoilt."""
    space = SPACE.replace("error: {at_most: 0.1}", "cores: {at_most: 0}")
    with closing(WorkerExecutor(spec_in(tmp_path, space=space), {})) as missing:
        submit(missing, 1, 2)
        _, ended = collect(missing, 2)
    assert {o.status for o in ended.values()} == {Status.WRONG}
    assert len({o.worker for o in ended.values()}) == 1
    objective = OBJECTIVE.replace('{"error": 0.0}', '{"error": 1.0}')
    with closing(WorkerExecutor(spec_in(tmp_path, objective), {})) as failing:
        submit(failing, 1, 2)
        _, ended = collect(failing, 2)
    assert {o.status for o in ended.values()} == {Status.WRONG}
    assert len({o.worker for o in ended.values()}) == 2


CHECKS_AHEAD = OBJECTIVE.replace("    def prepare(", "    checks_ahead = True\n\n    def prepare(").replace(
    'return {"error": 0.0}', 'return {"error": 1.0 if loaded == 55 else loaded * 1e-3 * rng.random()}'
)


def test_what_may_be_checked_ahead_is(tmp_path: Path) -> None:
    """By the worker that prepares; all that is told of a trial stays as it was."""
    seen = []
    for objective in (CHECKS_AHEAD, CHECKS_AHEAD.replace("checks_ahead = True", "")):
        with closing(WorkerExecutor(spec_in(tmp_path, objective), {})) as executor:
            submit(executor, 3, 55, 4, 66)
            _, ended = collect(executor, 4)
        seen.append(ended)
    ahead, in_turn = seen
    assert [o.status for _, o in sorted(ahead.items())] == [o.status for _, o in sorted(in_turn.items())]
    assert ahead[3].metrics["error"] == in_turn[3].metrics["error"]
    assert [r.value for r in ahead[3].readings] == [r.value for r in in_turn[3].readings]
    assert set(ahead[3].phases) == set(in_turn[3].phases)
    assert "check" in ahead[3].facts[TIMELINE] and "check" not in in_turn[3].facts[TIMELINE]
    assert ahead[55].status is Status.WRONG and ahead[55].phase == "check"
    assert ahead[55].worker != ahead[3].worker and in_turn[55].worker == in_turn[3].worker


@pytest.mark.long
def test_a_check_that_hangs_costs_its_trial_alone(tmp_path: Path) -> None:
    objective = CHECKS_AHEAD.replace("1.0 if loaded == 55", "time.sleep(600) if loaded == 55")
    space = SPACE.replace("measure: {", "measure: {timeout: 2, ")
    with closing(WorkerExecutor(spec_in(tmp_path, objective, space), {})) as executor:
        submit(executor, 55, 3)
        _, ended = collect(executor, 2)
    assert ended[55].status is Status.TIMEOUT and ended[55].phase == "check"
    assert "(timeout)" in ended[55].message
    assert ended[3].status is Status.OK


def test_a_changed_source_is_used_from_then_on(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    with closing(WorkerExecutor(spec, {}, prepare_workers=1)) as executor:
        submit(executor, 1)
        collect(executor, 1)
        changed = OBJECTIVE.replace("loaded + 1e-3", "loaded + 1000 + 1e-3").replace('"vendor"', '"another"')
        (tmp_path / "objective.py").write_text(changed)
        submit(executor, 2)
        executor.reload()
        assert collect(executor, 1)[1][2].status == "lost"
        submit(executor, 2)
        assert collect(executor, 1)[1][2].metrics["time"].value > 1000
        assert "another" in [baseline.name for baseline in executor.baselines()]


def test_a_changed_source_may_prepare_though_the_one_before_did_not(tmp_path: Path) -> None:
    before = OBJECTIVE.replace("def prepare(", "def not_yet(").replace(
        "with open(prepared) as file", "if prepared"
    )
    spec = spec_in(tmp_path, before.replace("float(file.read())", 'float(prepared["x"])'))
    with closing(WorkerExecutor(spec, {})) as executor:
        submit(executor, 1)
        assert collect(executor, 1)[1][1].status is Status.OK
        (tmp_path / "objective.py").write_text(OBJECTIVE)
        executor.reload()
        submit(executor, 2, 66)
        _, ended = collect(executor, 2)
    assert ended[2].status is Status.OK and ended[66].status is Status.INFEASIBLE


def test_where_it_cannot_begin_its_cores_are_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    spec = spec_in(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(tempfile, "tempdir", str(tmp_path / "no-such-folder"))
        lanes = find_lanes(spec.measure)
        with pytest.raises(AutotuneError, match="no temporary folder"):
            WorkerExecutor(spec, {}, lanes=lanes)
    [again] = find_lanes(spec.measure)
    with closing(again):
        assert again.place.cores == lanes[0].place.cores


def test_an_objective_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"objective\.py:1: .*needs the module 'no_such_module"):
        WorkerExecutor(spec_in(tmp_path, "import no_such_module_anywhere"), {})
    with pytest.raises(InputError, match=r"Compiled\.baselines\(\) failed: ZeroDivisionError"):
        WorkerExecutor(
            spec_in(tmp_path, OBJECTIVE.replace("return (autotune", "1 / 0; return (autotune")), {}
        )


def test_an_objective_that_kills_its_process_at_the_start_is_no_endless_loop(tmp_path: Path) -> None:
    with pytest.raises(AutotuneError, match=r"(?s)did not start: died by SIGABRT.*in the beginning"):
        WorkerExecutor(spec_in(tmp_path, "import os\nprint('in the beginning')\nos.abort()"), {})
    marker = tmp_path / "started"
    later = f"import os, pathlib\nif pathlib.Path({str(marker)!r}).exists(): os.abort()\n{OBJECTIVE}"
    with closing(WorkerExecutor(spec_in(tmp_path, later), {}, prepare_workers=1)) as executor:
        marker.touch()
        submit(executor, 1)
        with pytest.raises(AutotuneError, match="did not start: died by SIGABRT"):
            collect(executor, 1)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = set(child_processes())  # other tests may have started a resource tracker, which stays
    executor = WorkerExecutor(spec_in(tmp_path), {})
    [entrant] = executor.entrants([Baseline("vendor")])
    assert list(Path(tempfile.gettempdir()).glob(f"{owned_name('')}*"))
    submit(executor, 1, 77)
    executor.poll(0.0)
    children = set(child_processes()) - before
    assert children
    executor.close()
    entrant.close()
    assert not children & set(child_processes())
    assert list(Path(tempfile.gettempdir()).glob(f"{owned_name('')}*")) == []


def child_processes() -> list[int]:
    from autotune.measure.workers.descendants import descendants

    return descendants(os.getpid())


# -- which executor ----------------------------------------------------------------------------


def test_a_callable_is_measured_in_this_process(tmp_path: Path) -> None:
    seen = []

    def here(x: int) -> float:
        seen.append(os.getpid())
        return 1.0

    with closing(make_executor(spec_in(tmp_path), here)) as executor:
        assert isinstance(executor, InlineExecutor) and executor.capacity == 1
        submit(executor, 1)
        assert [type(e) for _ in range(2) for e in executor.poll(1)] == [Started, Finished]
    assert set(seen) == {os.getpid()}
    with pytest.raises(InputError, match="no parameter for the knob 'x'"):
        make_executor(spec_in(tmp_path), lambda y: 1.0)
    assert list(Path(tempfile.gettempdir()).glob(f"{owned_name('')}*")) == []


def test_limits_that_nothing_keeps_a_callable_to_are_said(tmp_path: Path) -> None:
    def remark(measure: str) -> str:
        spec = spec_in(tmp_path, space=SPACE.replace("measure: {", f"measure: {{{measure}, "))
        with closing(make_executor(spec, lambda x: 1.0)) as executor:
            return executor.remark

    assert remark("memory: 1GiB, timeout: 5").startswith("nothing keeps the objective to timeout, memory of")
    assert not remark("timeout: 60, cores: 0")


def test_an_objective_of_the_file_is_measured_by_workers(tmp_path: Path) -> None:
    with closing(make_executor(spec_in(tmp_path))) as executor:
        assert isinstance(executor, WorkerExecutor)
