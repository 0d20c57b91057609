"""What the hook costs a training script: to import, a report, and a step of 1 ms, idle and under a search.

    python -m benchmarks.hook --blocks 150 --out benchmarks/results/hook.md

The script that is timed runs by itself (idle), then as the only trial of a real `autotune search` with early
stopping, pinned by it to a core together with the worker that hears the reports. It alternates, in random
order, blocks of steps that report and ask whether to stop with blocks that do neither. The slow-down is the
ratio of their times, with a bootstrapped interval over pairs of neighbouring blocks: by the wall clock, in
which everything else on the machine stands as well, and by the time on the core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, run_as_command

STEP_SECONDS = 1e-3
STEPS_A_BLOCK = 5
STEPS = 200
"""Of each kind, for one of ``--blocks``."""
CALLS = 20_000
SENT_CALLS = 2_000

Found = dict[str, Any]
"""``blocks``, the seconds of the ``worker`` on the core, and those of single calls."""

SPACE = """
autotune: 1
name: hook
command:
  run: [{python}, -m, benchmarks.hook, --inside, {out}, --blocks, "{blocks}", --autogroup, "{autogroup}"]
  environment: {{PYTHONPATH: {root}}}
metrics: {{loss: {{goal: minimize}}}}
knobs: {{lr: {{range: [0.001, 1.0], scale: log, default: 0.1}}}}
search: {{strategy: random, early_stopping: {{policy: asha, resource: steps, max: 10000000, min: 1000000}}}}
measure: {{finalists: 0, timeout: 3600}}
budget: {{trials: 1}}
"""


# -- inside: the script that trains ------------------------------------------------------------


def make_step() -> Callable[[], float]:
    """Some arithmetic that takes a millisecond here and now."""

    def work(turns: int) -> float:
        x = 0.5
        for _ in range(turns):
            x = 3.7 * x * (1.0 - x)
        return x

    turns = 1000
    for _ in range(5):
        times = []
        for _ in range(50):
            start = time.perf_counter()
            work(turns)
            times.append(time.perf_counter() - start)
        turns = max(100, int(turns * STEP_SECONDS / statistics.median(times)))
    return lambda: work(turns)


def train(out: Path, blocks: int) -> None:
    """Time blocks with the hook and without, and single calls; write all of it to ``out``."""
    import autotune
    from autotune.hook.runs import reports as run_reports

    with autotune.run("hook") as run:
        run.knob("lr", default=0.1)
        work = make_step()
        steps = itertools.count(1)

        def hooked() -> None:
            loss = work()
            run.report(next(steps), loss=loss, samples_per_s=1.0)
            if run.should_stop:
                raise SystemExit("the search ended the benchmark")

        def report() -> None:
            run.report(next(steps), loss=0.5, samples_per_s=1.0)

        began = on_core(os.getppid())
        found: dict[str, object] = {"blocks": alternate(hooked, work, blocks * STEPS // STEPS_A_BLOCK)}
        found["worker"] = on_core(os.getppid()) - began
        found["report"] = [timed(report) for _ in range(CALLS)]
        found["should_stop"] = [timed(lambda: run.should_stop) for _ in range(CALLS)]
        found["report, each sent"] = []
        if run.searching:
            run_reports.SECONDS_BETWEEN = 0.0
            found["report, each sent"] = [(work(), timed(report))[1] for _ in range(SENT_CALLS)]
    out.write_text(json.dumps(found))


def alternate(hooked: Callable[[], None], plain: Callable[[], float], blocks: int) -> list[list[float]]:
    """Of each pair of blocks: wall and CPU seconds with the hook, wall and CPU seconds without."""
    rng = random.Random(0)
    pairs = []
    for _ in range(blocks):
        taken: dict[bool, tuple[float, float]] = {}
        for with_hook in rng.sample((True, False), 2):
            step = hooked if with_hook else plain
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(STEPS_A_BLOCK):
                step()
            taken[with_hook] = time.perf_counter() - wall, time.process_time() - cpu
        pairs.append([*taken[True], *taken[False]])
    return pairs


def on_core(pid: int) -> float:
    """Seconds that a process has been on a core so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) * 1e-9


# -- outside -----------------------------------------------------------------------------------


def idle(options: argparse.Namespace, folder: Path) -> Found:
    out = folder / "idle.json"
    environment = {name: text for name, text in os.environ.items() if name != "AUTOTUNE_RUN"}
    command = [sys.executable, "-m", "benchmarks.hook", "--inside", str(out), "--blocks", str(options.blocks)]
    command += ["--autogroup", str(options.autogroup)]
    subprocess.run(command, env=environment, check=True, start_new_session=True)
    return dict(json.loads(out.read_text()))


def tuning(options: argparse.Namespace, folder: Path) -> Found:
    out = folder / "tuning.json"
    root = Path(__file__).parent.parent
    space = folder / "space.yaml"
    values = {"blocks": options.blocks, "autogroup": options.autogroup}
    space.write_text(SPACE.format(python=sys.executable, out=out, root=root, **values))
    command = [sys.executable, "-m", "autotune", "search", str(space), "--store", str(folder / "hook.db")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return dict(json.loads(out.read_text()))


def imports(runs: int) -> dict[str, list[float]]:
    """CPU seconds of whole processes, interleaved."""
    codes = {"python -c pass": "pass", "import autotune; autotune.run": "import autotune; autotune.run"}
    taken: dict[str, list[float]] = {name: [] for name in codes}
    for turn in range(runs + 1):
        for name, code in codes.items():
            before = os.times()
            subprocess.run([sys.executable, "-c", code], check=True)
            after = os.times()
            if turn:  # the first round warms the disk cache
                spent = after.children_user + after.children_system
                taken[name].append(spent - before.children_user - before.children_system)
    return taken


Interval = tuple[float, float, float]


def ratio(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Time of all blocks with the hook, of that of all without, with a 95 % interval over the pairs."""

    def of(some: Sequence[tuple[float, float]]) -> float:
        return sum(hooked for hooked, _ in some) / sum(plain for _, plain in some)

    rng = random.Random(0)
    found = sorted(of(rng.choices(pairs, k=len(pairs))) for _ in range(2000))
    return of(pairs), found[50], found[-51]


def slowdowns(found: Found) -> dict[str, Interval]:
    """With the hook, of the time without: by the wall clock, and by the script's time on the core."""
    return {
        "wall clock": ratio([(hooked, plain) for hooked, _, plain, _ in found["blocks"]]),
        "time on the core": ratio([(hooked, plain) for _, hooked, _, plain in found["blocks"]]),
    }


def at_most(found: Found) -> Interval:
    """What a second of training under a search costs on its core, script and worker, as a ratio.

    Messages come so many a second, however slow others make the steps. So what they cost is a share of the
    wall clock, and the calls that send nothing cost their share of each step. The latter are counted twice.
    """
    blocks = found["blocks"]
    calls = statistics.median(found["report"]) + statistics.median(found["should_stop"])
    worker = found["worker"] / sum(hooked + plain for hooked, _, plain, _ in blocks)
    fixed = 1 + calls / STEP_SECONDS + worker

    def share(pairs: Sequence[list[float]]) -> float:
        return sum(cpu - plain for _, cpu, _, plain in pairs) / sum(wall for wall, *_ in pairs)

    rng = random.Random(0)
    shares = sorted(share(rng.choices(blocks, k=len(blocks))) for _ in range(2000))
    return fixed + share(blocks), fixed + shares[50], fixed + shares[-51]


def verdicts(started: Mapping[str, Sequence[float]], cases: Mapping[str, Found]) -> str:
    plain, hooked = (statistics.median(times) for times in started.values())
    _, low, high = slowdowns(cases["idle"])["time on the core"]
    middle = at_most(cases["tuning"])[0]
    report = statistics.median(cases["tuning"]["report, each sent"])
    bars = (
        (f"the import takes {(hooked - plain) * 1e3:.1f} ms, under 50", hooked - plain < 0.050),
        (f"nothing is measurable when idle, {low:.4f} to {high:.4f}", low <= 1.0),
        (f"under 1 % while tuning, at most {(middle - 1) * 100:.2f} %", middle < 1.01),
        (f"a report that is sent takes {report * 1e6:.1f} us, under 20", report < 20e-6),
    )
    return "Bars: " + "; ".join(f"{text}: {'met' if good else 'NOT met'}" for text, good in bars) + "."


def table(options: argparse.Namespace, started: dict[str, list[float]], cases: dict[str, Found]) -> str:
    about = (
        f"{software()}; {machine()}, load average {os.getloadavg()[0]:.1f}."
        f" Steps of 1 ms, in blocks of {STEPS_A_BLOCK}."
    )
    loaded = (
        "Where a machine is loaded, the wall clock says most of the others, and a step's time on the core has"
        " more messages in it than it would have; the last line of the table has not."
    )
    starts = head("process | median CPU s | min | max")
    starts += (
        f"| `{n}` | {statistics.median(t):.3f} | {min(t):.3f} | {max(t):.3f} |" for n, t in started.items()
    )
    slower = head("case | by | with the hook, of the time without | 95 % interval")
    for name, found in cases.items():
        for by, (middle, low, high) in slowdowns(found).items():
            slower.append(f"| {name} | {by} | {middle:.4f} | {low:.4f} to {high:.4f} |")
    middle, low, high = at_most(cases["tuning"])
    slower.append(
        f"| tuning | core time a second, script and worker | {middle:.4f} | {low:.4f} to {high:.4f} |"
    )
    calls = head("a call | median us | p99 us")
    for name, found in cases.items():
        for call in ("report", "report, each sent", "should_stop"):
            if values := sorted(found[call]):
                p99 = values[int(0.99 * len(values))]
                calls.append(
                    f"| `{call}`, {name} | {statistics.median(values) * 1e6:.2f} | {p99 * 1e6:.2f} |"
                )
    parts = about, loaded, starts, slower, calls, verdicts(started, cases)
    return page("What the hook costs a training script", options.command, *parts)


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--blocks", type=at_least_one, default=150, help="pairs of blocks of each case")
    parser.add_argument("--runs", type=at_least_one, default=15, help="processes that only import")
    parser.add_argument(
        "--autogroup", type=int, default=0, help="nice value of the script's group of processes"
    )
    parser.aside("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.read()
    if options.inside:
        if options.autogroup:
            Path("/proc/self/autogroup").write_text(str(options.autogroup))
        train(options.inside, options.blocks)
        return
    started = imports(options.runs)
    with tempfile.TemporaryDirectory() as folder:
        cases = {"idle": idle(options, Path(folder)), "tuning": tuning(options, Path(folder))}
    text = table(options, started, cases)
    publish(text, options.out)


if __name__ == "__main__":
    run_as_command(main)
