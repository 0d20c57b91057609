"""A training of several ranks under early stopping: same knobs, same last step, no deadlock.

    python -m benchmarks.hook_ranks --trials 50 --out benchmarks/results/hook_ranks.md

The script runs under `torchrun` with gloo and averages its gradients at each step. Each rank writes down the
knobs that it had and the step after which it left its loop; the table compares them trial by trial. Needs
PyTorch. `--folder` keeps the study: the same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, run_as_command

RANKS = 2
STEPS = 27

SCRIPT = """
import json, os, sys, time
import torch
import torch.distributed as dist
import autotune

torch.set_num_threads(1)
with autotune.run("ranks") as run:
    rate = run.knob("rate", default=0.1)
    width = run.knob("width", default=16)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    weight, target = torch.zeros(width), torch.ones(width)
    step = 0
    while step < (run.steps or 27):
        step += 1
        gradient = weight - target + 0.1 * torch.randn(width)
        dist.all_reduce(gradient)
        weight -= rate * gradient / dist.get_world_size()
        time.sleep(0.02 * (1 + rank * (step % 3)))  # a rank is late now and then
        run.report(step, loss=float((weight - target).square().mean()))
        if run.should_stop:
            break
    with open(sys.argv[1], "a") as ledger:
        line = {"trial": os.environ["AUTOTUNE_RUN"], "rank": rank, "last": step, "knobs": [rate, width]}
        ledger.write(json.dumps(line) + "\\n")
    dist.barrier()  # one that had gone on alone would wait here for ever
    dist.destroy_process_group()
"""

SPACE = """
autotune: 1
name: ranks
command: [{python}, -m, torch.distributed.run, --standalone, --nproc-per-node, "{ranks}", train.py, {ledger}]
metrics: {{loss: {{goal: minimize}}}}
knobs:
  rate: {{range: [1.0e-3, 1.9], scale: log, default: 0.1}}
  width: {{values: [4, 16, 64], default: 16}}
search: {{strategy: random, early_stopping: {{policy: asha, resource: steps, max: {steps}}}}}
measure: {{finalists: 0, timeout: {timeout}}}
"""


def search(folder: Path, trials: int, timeout: float) -> list[dict[str, Any]]:
    """All trials of the study, run where they have not been."""
    ledger = folder / "ledger.jsonl"
    (folder / "train.py").write_text(SCRIPT)
    space = SPACE.format(python=sys.executable, ranks=RANKS, ledger=ledger, steps=STEPS, timeout=timeout)
    (folder / "space.yaml").write_text(space)
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--trials", str(trials)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--store", "study.db"], cwd=folder, env=environment, check=True)
    export = [sys.executable, "-m", "autotune", "export", "--format", "json", "--to", "trials.json"]
    subprocess.run([*export, "--store", "study.db"], cwd=folder, check=True)
    return list(json.loads((folder / "trials.json").read_text()))


def compare(ledger: Path) -> dict[str, int]:
    """How many starts of the script there were, and in how many of them the ranks differed."""
    starts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in ledger.read_text().splitlines():
        entry = json.loads(line)
        starts[entry["trial"]].append(entry)
    return {
        "starts that all ranks left": sum(len(ranks) == RANKS for ranks in starts.values()),
        "starts that some ranks did not leave": sum(len(ranks) != RANKS for ranks in starts.values()),
        "different knobs": sum(len({str(r["knobs"]) for r in ranks}) != 1 for ranks in starts.values()),
        "different last steps": sum(len({r["last"] for r in ranks}) != 1 for ranks in starts.values()),
        "left before the last step": sum(ranks[0]["last"] < STEPS for ranks in starts.values()),
    }


def table(options: argparse.Namespace, trials: list[dict[str, Any]], found: dict[str, int]) -> str:
    statuses: dict[str, int] = defaultdict(int)
    for trial in trials:
        statuses[trial["status"]] += 1
    seconds = [trial["seconds"] for trial in trials if trial.get("seconds") is not None]
    about = (
        f"{software('torch')}, gloo, {RANKS} ranks under torchrun; {machine()}, load average"
        f" {os.getloadavg()[0]:.1f}; asha over {STEPS} steps, random search with seed 0."
    )
    lines = head("what | count")
    lines += (f"| trials that ended as `{status}` | {count} |" for status, count in sorted(statuses.items()))
    lines += (f"| {what} | {count} |" for what, count in found.items())
    longest = (
        f"The longest trial took {max(seconds):.0f} s; one that hangs would end as `timeout` after"
        f" {options.timeout:.0f} s."
    )
    return page("Ranks that stop together", options.command, about, lines, longest)


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--trials", type=at_least_one, default=50)
    parser.add_argument("--timeout", type=float, default=300, help="seconds a trial may take")
    parser.aside("--folder", type=Path, help="keep the study here, and go on with it")
    options = parser.read()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        trials = search(folder.resolve(), options.trials, options.timeout)
        text = table(options, trials, compare(folder / "ledger.jsonl"))
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)
    publish(text, options.out)


if __name__ == "__main__":
    run_as_command(main)
