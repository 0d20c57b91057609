"""Tune the flags of a compiler: the least code that gcc makes of a C file.

    python examples/compiler_flags.py FILE.c --trials 100

Every optimisation that this gcc has a flag for is a knob, some two hundred, and what ``-O2`` makes of them is
the default. What gcc refuses is ``infeasible``, and the search learns from it.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import autotune
from autotune.space import Flag, Space

MEANING = {
    *("allow-store-data-races", "delete-null-pointer-checks", "finite-loops", "strict-aliasing"),
    *("associative-math", "cx-fortran-rules", "cx-limited-range", "finite-math-only", "reciprocal-math"),
    *("rounding-math", "signed-zeros", "single-precision-constant", "trapping-math"),
    *("unsafe-math-optimizations", "math-errno", "unconstrained-commons"),
    *("pack-struct", "short-enums", "short-wchar"),
}
"""Flags by which a program may no longer mean the same, or no longer fit to what others have compiled: they
are for those who check its answers."""


def flags_at_o2() -> dict[str, bool]:
    """The optimisations that gcc can be told to do or not, and whether it does them at -O2."""
    command = ["gcc", "-Q", "-O2", "--help=optimizers"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in said.splitlines()]
    found = {
        word[0][2:]: word[1] for word in words if len(word) == 2 and word[1] in ("[enabled]", "[disabled]")
    }
    return {name: state == "[enabled]" for name, state in found.items() if name not in MEANING}


class Code:
    """The code that gcc makes of a ``file``."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.usual = {name.replace("-", "_"): on for name, on in flags_at_o2().items()}

    def flags(self, knobs: Mapping[str, object]) -> list[str]:
        """What has to be said beside -O2."""
        changed = {knob.replace("_", "-"): on for knob, on in knobs.items() if on != self.usual[knob]}
        return [f"-f{name}" if on else f"-fno-{name}" for name, on in changed.items()]

    def size(self, **knobs: bool) -> float:
        """Bytes of machine code and constants."""
        with tempfile.TemporaryDirectory() as folder:
            made = f"{folder}/made.o"
            command = ["gcc", "-O2", *self.flags(knobs), "-c", str(self.file), "-o", made]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise autotune.Infeasible(done.stderr)
            said = subprocess.run(["size", made], capture_output=True, text=True, check=True).stdout
        return float(said.splitlines()[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", help="where trials are kept [default: results/autotune.db]")
    asked = parser.parse_args()
    code = Code(asked.file)
    try:
        code.size()
    except autotune.Infeasible as error:
        raise SystemExit(f"gcc -O2 does not compile {asked.file}:\n{error}") from None
    study = autotune.StudySpec(
        f"gcc-{asked.file.stem}",
        Space([Flag(knob, default=on) for knob, on in code.usual.items()]),
        metrics=(autotune.MetricSpec("size", goal="minimize", unit="B"),),
        measure=autotune.MeasureSettings(
            min_readings=1, max_readings=1, warmup=0
        ),  # it is the same each time
        search=autotune.SearchSettings(strategy=asked.strategy, seed=asked.seed),
    )
    result = autotune.search(study, objective=code.size, trials=asked.trials, store=asked.store)
    if result.best is None or result.default is None:
        raise SystemExit(f"nothing to compare: {result.why_nothing or result.remark}")
    size = result.metrics["size"].value
    print(f"{size:.0f} bytes in place of {result.default.value:.0f}, after {len(result.trials)} trials:")
    print("gcc -O2", *code.flags(result.best))


if __name__ == "__main__":
    main()
