"""How long it takes until a constrained space is ready to sample and index, beside Kernel Tuner and pyATF.

    python -m benchmarks.space_construction --peer-python /path/to/venv/bin/python \\
        --out benchmarks/results/space_construction.md

The peers (packages ``kernel_tuner`` and ``pyatf``) live in a virtual environment of their own, whose
interpreter is given. Every construction is a fresh process; imports are not counted; the tools take
turns within each round, so that a slow moment of the machine falls on all. What is timed:

- autotune: from knobs and constraint texts to an exact count, one configuration drawn, and its index.
- Kernel Tuner: ``Searchspace(tune_params, restrictions, max_threads=1024)``, its defaults.
- pyATF: ``SearchSpace(...)``, without ``enable_1d_access`` (which indexing would need and which makes it
  slower). Its constraints are functions attached to the last knob that they mention, so the order of
  the knobs matters: it is run in the order given and in the order that closes constraints early,
  and the better median counts.

Then spaces of 10**12 combinations whose constraints tie all knobs, which no peer can build: the time to
count or bound them, to draw 1,000 configurations uniformly, and the peak memory of the whole process.

Exit code 1 where a count is wrong, a sample violates a constraint, or a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

# Only the standard library up here: workers run under the peers' interpreter, too.

ROOT = Path(__file__).resolve().parents[1]
SPACES = ROOT.parent / "shared" / "spaces" / "kernel-spaces.json"
TOOLS = ("autotune", "kernel_tuner", "pyatf", "pyatf-ordered")
LARGEST = "hotspot-large"
TIMES_FASTER = 10
SECONDS, MEGABYTES, SAMPLES = 2.0, 300, 1000

Space = dict[str, Any]


# --- constructing one space, in a process of its own ------------------------------------------------


def construct_autotune(space: Space) -> Callable[[], int]:
    import numpy as np

    # Loaded late; imports are not counted.
    from autotune.space.feasible_set import feasible  # noqa: F401
    from autotune.space.knobs import OrderedValues
    from autotune.space.language import binding  # noqa: F401
    from autotune.space.space import Space as Built

    rng = np.random.default_rng(0)

    def construct() -> int:
        knobs = [OrderedValues(name, tuple(values)) for name, values in space["knobs"].items()]
        built = Built(knobs, space["constraints"])
        count = len(built.feasible)
        (drawn,) = built.feasible.sample(rng)
        assert built.feasible[built.feasible.index(drawn)] == drawn
        return count

    return construct


def construct_kernel_tuner(space: Space) -> Callable[[], int]:
    from kernel_tuner.searchspace import Searchspace

    return lambda: int(Searchspace(space["knobs"], list(space["constraints"]), 1024).size)


def construct_pyatf(space: Space, ordered: bool) -> Callable[[], int]:
    from pyatf import TP, Set
    from pyatf.search_space import SearchSpace

    names = closing_order(space) if ordered else list(space["knobs"])
    last: dict[str, list[str]] = {name: [] for name in names}
    for text in space["constraints"]:
        last[max(mentioned(text, names), key=names.index)].append(text)

    def construct() -> int:
        knobs = [
            TP(name, Set(*space["knobs"][name]), together(texts, names) if (texts := last[name]) else None)
            for name in names
        ]
        return int(SearchSpace(*knobs, verbosity=0).constrained_size)

    return construct


def mentioned(text: str, names: Iterable[str]) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text)) & set(names)


def together(texts: list[str], names: list[str]) -> Callable[..., bool]:
    """One Python function of the knobs that these constraints mention."""
    whole = " and ".join(f"({text})" for text in texts)
    arguments = sorted(mentioned(whole, names), key=names.index)
    function: Callable[..., bool] = eval(f"lambda {', '.join(arguments)}: {whole}")
    return function


def closing_order(space: Space) -> list[str]:
    """The knobs of the shortest constraints first, so that each is tested as early as possible."""
    order: list[str] = []
    open_ = [mentioned(text, space["knobs"]) for text in space["constraints"]]
    while open_:
        nearest = min(open_, key=lambda names: len(names - set(order)))
        order += sorted(nearest - set(order), key=list(space["knobs"]).index)
        open_.remove(nearest)
    return order + [name for name in space["knobs"] if name not in order]


def work(tool: str, space: Space) -> dict[str, Any]:
    """Construct once and say how long it took."""
    if tool == "huge":
        return build_huge(space)
    ways: dict[str, Callable[[Space], Callable[[], int]]] = {
        "autotune": construct_autotune,
        "kernel_tuner": construct_kernel_tuner,
        "pyatf": lambda given: construct_pyatf(given, ordered=False),
        "pyatf-ordered": lambda given: construct_pyatf(given, ordered=True),
    }
    construct = ways[tool](space)
    start = time.perf_counter()
    count = construct()
    return {"seconds": time.perf_counter() - start, "count": count, "megabytes": peak_megabytes()}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- 10**12 combinations -----------------------------------------------------------------------------

TWELVE = [f"k{n}" for n in range(12)]
WEIGHTS = [78036, 71042, 77326, 11184, 41375, 30201, 80815, 16168, 32328, 95191, 20627, 67763]


def weighted(weights: Iterable[float]) -> str:
    return " + ".join(f"{weight} * {name}" for weight, name in zip(weights, TWELVE, strict=True))


HUGE: dict[str, list[str]] = {
    "sum": [" + ".join(TWELVE) + " <= 40"],
    "product under a byte limit": [" * ".join(TWELVE) + " * 4 <= 196608"],
    "modulo": [f"({weighted(WEIGHTS)}) % 97 == 5"],
    "large modulo": [f"({weighted(WEIGHTS)}) % 10007 == 5"],
    "neighbouring products": [" + ".join(f"{a} * {b}" for a, b in pairwise(TWELVE)) + " <= 150"],
    "tiles, modulo, extremes": [
        "(k0 * k1 + 2 * k2) * (k3 * k4 + 2 * k2) * (2 + k5) * 4 <= 49152",
        "(k0 + k3 + k6 + k7 + k8) % 7 == 3",
        "k6 * k7 * k8 * k9 <= 500",
        "max(k9, k10, k11) - min(k0, k1, k10) <= 6",
        "k11 % k9 == 0 or k10 > k8",
    ],
    "irregular weights": [f"{weighted(WEIGHTS)} <= 2000000"],
    "irregular floats": [f"{weighted(weight / 99991 for weight in WEIGHTS)} <= 20"],
    "two irregular weights": [f"{weighted(WEIGHTS)} <= 2500000", f"{weighted(WEIGHTS[::-1])} >= 3000000"],
    "nasty": [
        "(k0 * k1 + k2 * k3 + k4 * k5) * (k6 + k7 * k8) + k9 * k10 * k11 <= 3000",
        "(k0 * 7 + k2 * 11 + k5 * 13 + k8 * 17 + k11 * 19) % 23 == 4",
        "k0 * k3 * k6 * k9 >= k1 * k4 * k7 * k10 / 4",
    ],
}


def build_huge(space: Space) -> dict[str, Any]:
    """Count or bound, then draw; the memory is that of the whole process."""
    import numpy as np

    # Loaded late; imports are not counted.
    from autotune.space.feasible_set import feasible  # noqa: F401
    from autotune.space.knobs import IntegerRange
    from autotune.space.language import binding  # noqa: F401
    from autotune.space.space import Space as Built

    rng = np.random.default_rng(0)
    start = time.perf_counter()
    built = Built([IntegerRange(name, 1, 10) for name in TWELVE], space["constraints"])
    low, high = built.feasible.bounds
    counted = time.perf_counter()
    drawn = built.feasible.sample(rng, SAMPLES)
    seconds = time.perf_counter() - start
    megabytes = peak_megabytes()
    good = len(drawn) == SAMPLES and not any(built.violated(values) for values in drawn)
    estimate = built.feasible.estimate
    return {
        "seconds": seconds,
        "counted": counted - start,
        "megabytes": megabytes,
        "low": low,
        "high": high,
        "estimate": [estimate.value, estimate.low, estimate.high],
        "good": good,
    }


# --- the rounds ---------------------------------------------------------------------------------------


def run(python: str, tool: str, space: Space) -> dict[str, Any]:
    """One construction in a fresh process."""
    try:
        done = subprocess.run(
            [python, str(Path(__file__).resolve()), "--worker", tool],
            input=json.dumps(space),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)} if python == sys.executable else None,
        )
    except OSError as error:
        raise SystemExit(f"cannot run {python}: {error.strerror}") from None
    if done.returncode:
        raise SystemExit(f"{tool} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def compare(spaces: dict[str, Space], peer_python: str | None, rounds: int) -> tuple[list[str], list[str]]:
    """The table of the real spaces, and what went wrong."""
    tools = TOOLS if peer_python else TOOLS[:1]
    taken: dict[tuple[str, str], list[float]] = {(name, tool): [] for name in spaces for tool in tools}
    wrong = []
    for number in range(rounds):
        for name, space in spaces.items():
            for tool in tools[number % len(tools) :] + tools[: number % len(tools)]:
                python = sys.executable if tool == "autotune" else str(peer_python)
                answer = run(python, tool, space)
                taken[name, tool].append(answer["seconds"])
                if answer["count"] != space["valid"]:
                    wrong.append(f"{tool} counts {answer['count']:,} in {name}, not {space['valid']:,}")
                cost = f"{answer['seconds']:.3f} s, {answer['megabytes']:.0f} MB"
                say(f"round {number + 1}: {name}, {tool}: {cost}")
    lines = [
        "| space | combinations | feasible | autotune s | Kernel Tuner s | ratio | pyATF s | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, space in spaces.items():
        ours = taken[name, "autotune"]
        cells = [name, f"{space['cartesian']:,}", f"{space['valid']:,}", spread(ours)]
        for peer in ("kernel_tuner", "pyatf"):
            theirs = [taken[name, tool] for tool in tools if tool.startswith(peer)]
            best = min(theirs, key=statistics.median, default=None)
            if best is None:
                cells += ["not run", ""]
                continue
            ratio = statistics.median(best) / statistics.median(ours)
            cells += [spread(best), f"{ratio:.1f}"]
            least = TIMES_FASTER if (name, peer) == (LARGEST, "kernel_tuner") else 1
            if ratio < least:
                wrong.append(f"{name}: {ratio:.2f} times as fast as {peer}, not {least}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines, wrong


def huge(rounds: int) -> tuple[list[str], list[str]]:
    """The table of the huge spaces, and what went wrong."""
    lines = [
        f"| constraints | feasible | seconds, count and {SAMPLES:,} samples | of them counting | peak MB |",
        "|---|---|---|---|---|",
    ]
    wrong = []
    for name, constraints in HUGE.items():
        answers = [run(sys.executable, "huge", {"constraints": constraints}) for _ in range(rounds)]
        first = answers[0]
        seconds = [answer["seconds"] for answer in answers]
        megabytes = max(answer["megabytes"] for answer in answers)
        say(f"{name}: {statistics.median(seconds):.2f} s, {megabytes:.0f} MB")
        count = f"{first['low']:,}"
        if first["low"] != first["high"]:
            value, low, high = first["estimate"]
            count = f"{first['low']:.2e} to {first['high']:.2e}, about {value:.3g} ({low:.3g} to {high:.3g})"
        counting = statistics.median(answer["counted"] for answer in answers)
        lines.append(f"| {name} | {count} | {spread(seconds)} | {counting:.2f} | {megabytes:.0f} |")
        if not all(answer["good"] for answer in answers):
            wrong.append(f"{name}: a sample violates a constraint")
        if statistics.median(seconds) > SECONDS or megabytes > MEGABYTES:
            wrong.append(f"{name}: {statistics.median(seconds):.2f} s and {megabytes:.0f} MB")
    return lines, wrong


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def versions(peer_python: str | None) -> str:
    from benchmarks.publishing import software

    own = software("numpy")
    if peer_python is None:
        return own
    program = (
        "import platform; from importlib.metadata import version as v; "
        "print(f\"kernel_tuner {v('kernel_tuner')}, pyatf {v('pyatf')}, Python {platform.python_version()}\")"
    )
    peers = subprocess.run([peer_python, "-c", program], capture_output=True, text=True, check=True)
    return f"{own}; beside {peers.stdout.strip()}"


def processor() -> str:
    from benchmarks.publishing import machine

    return f"{machine()}, load average {os.getloadavg()[0]:.1f} at the end"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer-python", help="the interpreter of an environment with kernel_tuner and pyatf")
    parser.add_argument("--spaces", type=Path, default=SPACES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker, json.load(sys.stdin))))
        return 0
    if options.rounds < 1:
        parser.error(f"argument --rounds: {options.rounds} is not at least 1")
    if not options.spaces.exists():
        parser.error(f"there is no {options.spaces}: give --spaces, a JSON file of knobs and constraints")
    if options.peer_python is None:
        say("no --peer-python: the peers are not run")
    real, wrong = compare(json.loads(options.spaces.read_text()), options.peer_python, options.rounds)
    giant, missed = huge(options.rounds)
    peers = " --peer-python PEERS/bin/python" if options.peer_python else ""
    lines = [
        "# Constructing constrained spaces",
        "",
        f"`python -m benchmarks.space_construction{peers} --rounds {options.rounds}`",
        "",
        f"{versions(options.peer_python)}; {processor()}.",
        "",
        "Seconds until a space is ready to sample and index: median (least to most), each construction in a "
        "fresh process, imports not counted, the tools taking turns. A ratio is that of the medians.",
        "",
        *real,
        "",
        "10^12 combinations (12 knobs from 1 to 10), constraints that tie all knobs. Peak memory is that "
        "of the whole process, interpreter and numpy included.",
        "",
        *giant,
        "",
        *(f"- MISSED: {problem}" for problem in (*wrong, *missed)),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    from benchmarks.publishing import publish

    publish(text, options.out)
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    sys.exit(main())
