"""What processes do before their first trial, and how finalists enter."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from autotune.measure.cores.turns import FileLock, find_place
from autotune.measure.gpu.claims import GpuClaim
from autotune.measure.objective import Baseline
from autotune.measure.workers import process
from autotune.session.execution.executor import Entrant
from autotune.session.execution.lane import Lane
from autotune.session.execution.workers import WorkerExecutor
from autotune.status import Status
from tests.session.execution.compiled import OBJECTIVE, collect, rejecting_none, spec_in, submit

# -- standing by -------------------------------------------------------------------------------

STANDING_BY = OBJECTIVE.replace(
    "    def prepare(",
    """    def stand_by(self):
        with (self.context.cache / "stood").open("a") as file:
            file.write(f"{os.getpid()} {'finale' if self.final else 'search'}\\n")
        ...

    def prepare(""",
    1,
)


def stood(executor: WorkerExecutor) -> list[str]:
    """Who has stood by: for the search, or for a finale."""
    file = executor._crew._factory._scratch[0] / "stood"
    return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []


def test_the_first_trial_is_not_given_to_a_worker_that_still_stands_by(tmp_path: Path) -> None:
    """So that this does not count against its limit, which begins when it is given."""
    os.mkfifo(tmp_path / "pipe")
    spec = spec_in(tmp_path, STANDING_BY.replace("...", f"open({str(tmp_path / 'pipe')!r}).close()"))
    with closing(WorkerExecutor(spec, {}, prepare_workers=1)) as executor:
        assert executor.starting > 0
        submit(executor, 1)
        while not executor._waiting.to_measure:
            executor.poll(0.1)
        [measurer] = executor._crew.measurers
        executor.poll(0.1)
        assert measurer.worker is not None and measurer.worker.standing_by and measurer.job is None
        with (tmp_path / "pipe").open("w"):
            pass
        assert collect(executor, 1)[1][1].status == "ok"
        assert stood(executor) == ["search"], "and who prepares does not stand by"


@pytest.mark.parametrize("fault", ["os.abort()", "time.sleep(600)"])
def test_one_that_dies_or_hangs_while_it_stands_by_costs_no_trial(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STAND_BY_SECONDS", 0.2)
    spec = rejecting_none(spec_in(tmp_path, STANDING_BY.replace("...", fault)))
    with closing(WorkerExecutor(spec, {})) as executor:
        submit(executor, 1, 2)
        _, outcomes = collect(executor, 2)
        assert {str(outcome.status) for outcome in outcomes.values()} == {"ok"}
        [vendor] = executor.entrants([Baseline("vendor")])
        assert vendor.failure is None and vendor.read(0)
        assert stood(executor) in ([], ["search"]), "the next ones do without, finalists included"


@pytest.mark.long
def test_finalists_stand_by_and_do_without_where_they_die_of_it(tmp_path: Path) -> None:
    for fault in ("pass", "self.final and os.abort()"):
        with closing(WorkerExecutor(spec_in(tmp_path, STANDING_BY.replace("...", fault)), {})) as executor:
            submit(executor, 1)
            collect(executor, 1)
            for entrant in executor.entrants([Baseline(name) for name in ("vendor", "tuned")]):
                assert entrant.failure is None and entrant.read(0)
            assert stood(executor) == ["search", "finale", "finale"]


def test_who_still_stands_by_gives_way_to_finalists(tmp_path: Path) -> None:
    fault = "self.final or time.sleep(600)"
    with closing(WorkerExecutor(spec_in(tmp_path, STANDING_BY.replace("...", fault)), {})) as executor:
        [measurer] = executor._crew.measurers
        assert measurer.worker is not None
        [vendor] = executor.entrants([Baseline("vendor")])
        assert measurer.worker is None and vendor.failure is None and vendor.read(0)
        submit(executor, 1)
        executor.poll(0)
        assert measurer.worker is not None, "and another one comes for the next trial"


def test_nobody_stands_by_on_a_gpu_that_others_measure_on(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, STANDING_BY)
    with closing(WorkerExecutor(spec, {}, lanes=gpu_lane(tmp_path, shared=True))) as executor:
        submit(executor, 1)
        assert collect(executor, 1)[1][1].status == "ok"
        assert executor.entrants([Baseline("vendor")])[0].failure is None
        assert stood(executor) == []


# -- entering side by side ---------------------------------------------------------------------


def gpu_lane(folder: Path, *, shared: bool = False) -> tuple[Lane, ...]:
    """A lane with a GPU that is only a name."""
    claim = None if shared else FileLock(folder / "claim")
    return (Lane(find_place(0, folder, gpu="GPU-1"), GpuClaim("GPU-1", "0", "H200", claim)),)


def entered(executor: WorkerExecutor, *values: int) -> list[Entrant]:
    configurations = [executor.spec.space.configuration({"x": x}) for x in values]
    return executor.entrants(configurations)


def test_on_a_gpu_entrants_check_side_by_side_and_only_readings_come_one_by_one(tmp_path: Path) -> None:
    """A pipe opens when somebody is at either end: each of the two opens one."""
    meets = f'with open({str(tmp_path / "pipe")!r}, "rw"[int(loaded) - 1]): pass\n        '
    counts = f'with open({str(tmp_path / "readings")!r}, "a") as file: file.write("x")\n        '
    objective = OBJECTIVE.replace('return {"error"', f'{meets}return {{"error"')
    objective = objective.replace("if loaded == 77", f"{counts}if loaded == 77")
    os.mkfifo(tmp_path / "pipe")
    with closing(WorkerExecutor(spec_in(tmp_path, objective), {}, lanes=gpu_lane(tmp_path))) as executor:
        entrants = entered(executor, 1, 2)
        assert not (tmp_path / "readings").exists(), "none was warmed up while the other was at work"
        for entrant in entrants:
            assert entrant.failure is None
            assert [r.discarded for r in entrant.read(0) if r.metric == "time"] == ["warm-up", ""]


def test_one_that_enters_alone_is_warmed_up(tmp_path: Path) -> None:
    counts = f'with open({str(tmp_path / "readings")!r}, "a") as file: file.write("x")\n        '
    objective = OBJECTIVE.replace("if loaded == 77", f"{counts}if loaded == 77")
    with closing(WorkerExecutor(spec_in(tmp_path, objective), {})) as executor:
        entered(executor, 1, 2)
    assert (tmp_path / "readings").read_text() == "xx"


@pytest.mark.parametrize("room", [True, False])
def test_an_entrant_that_others_left_no_memory_enters_again_alone(tmp_path: Path, room: bool) -> None:
    tried = tmp_path / "tried"
    check = f"""
        with open({str(tried)!r}, "a") as file: file.write(str(int(loaded)))
        if loaded == 1 and (not {room} or open({str(tried)!r}).read().count("1") == 1):
            raise MemoryError("no room")
        """
    objective = OBJECTIVE.replace('return {"error"', f'{check}return {{"error"')
    with closing(WorkerExecutor(spec_in(tmp_path, objective), {}, lanes=gpu_lane(tmp_path))) as executor:
        first, second = entered(executor, 1, 2)
        assert sorted(tried.read_text()) == ["1", "1", "2"]
        assert second.failure is None and second.read(0)
        if room:
            assert first.failure is None and first.read(0)
        else:
            assert first.failure is not None and first.failure.status is Status.OUT_OF_MEMORY


def test_what_fails_while_others_enter_fails_alone(tmp_path: Path) -> None:
    objective = OBJECTIVE.replace('return {"error"', 'if loaded == 1: os.abort()\n        return {"error"')
    with closing(WorkerExecutor(spec_in(tmp_path, objective), {}, lanes=gpu_lane(tmp_path))) as executor:
        died, refused, stands = entered(executor, 1, 66, 2)
        assert died.failure is not None and died.failure.status is Status.CRASHED
        assert refused.failure is not None and refused.failure.message == "66 is refused"
        assert stands.failure is None and stands.read(0)


# -- processes that prepare ----------------------------------------------------------------------


def test_on_a_gpu_those_that_prepare_start_beside_the_one_that_measures(tmp_path: Path) -> None:
    with closing(WorkerExecutor(spec_in(tmp_path), {}, 2, lanes=gpu_lane(tmp_path))) as executor:
        assert [slot.worker is not None for slot in executor._crew.preparers] == [True, True]
        submit(executor, 1, 2)
        assert set(collect(executor, 2)[1]) == {1, 2}


def test_where_nothing_is_to_be_prepared_they_are_gone_again(tmp_path: Path) -> None:
    spec = spec_in(
        tmp_path,
        OBJECTIVE.replace("def prepare(", "def unused(").replace("open(prepared)", "open('/dev/null')"),
    )
    with closing(WorkerExecutor(spec, {}, 2, lanes=gpu_lane(tmp_path))) as executor:
        assert executor._crew.preparers == [] and executor.capacity == 2
