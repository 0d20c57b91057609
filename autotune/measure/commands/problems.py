"""What can be wrong with a ``command:`` before anything is run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace

from autotune.errors import Problem, nearest
from autotune.measure.commands.handing import hands_nothing
from autotune.measure.commands.python_program import own_python, script_of
from autotune.provenance.code.files import is_file
from autotune.space.placeholders import fill, names
from autotune.space.spec import CommandObjective, MetricSpec


def problems(spec: CommandObjective, metrics: Sequence[MetricSpec]) -> list[Problem]:
    """Programs that do not exist, metrics that nothing can give, and knobs that never reach the command."""
    found = [*_program_problems(spec), *_metric_problems(spec, metrics), *_knob_problems(spec)]
    return [replace(problem, where=spec.where) for problem in found]


def _program_problems(spec: CommandObjective) -> list[Problem]:
    if not spec.base.is_dir():
        return [Problem(f"the folder {spec.base} in which the command runs does not exist")]
    made_by_prepare = (spec.arguments, spec.check) if spec.prepare else ()
    found: list[Problem] = []
    for command in filter(None, (spec.prepare, spec.check, spec.arguments)):
        program = command[0]
        if names(program) or ("/" in program and command in made_by_prepare):
            continue
        problem = _program_problem(fill(program, {}), spec) or _script_problem(command, spec)
        if problem is not None and problem not in found:
            found.append(problem)
    return found


def _program_problem(program: str, spec: CommandObjective) -> Problem | None:
    if "/" not in program:
        path = spec.environment.get("PATH") or os.environ.get("PATH")
        if "{" in (path or "") or shutil.which(program, path=path):
            return None
        here = is_file(spec.base / program)
        return Problem(
            f"there is no program {program!r}",
            expected="a program on the PATH, or a path with a /",
            hint=f"write ./{program} for the one in {spec.base}" if here else own_python(program),
        )
    file = spec.base / program
    if not is_file(file):
        return Problem(f"there is no program {program!r} in {spec.base}", expected=f"the file {file}")
    if not os.access(file, os.X_OK):
        return Problem(f"{file} may not be run", hint=f"chmod +x {file}")
    return None


def _script_problem(command: Sequence[str], spec: CommandObjective) -> Problem | None:
    """That the file of ``python bench.py`` does not exist, unless ``prepare`` may make it."""
    script = script_of(command)
    if not script or spec.prepare or names(script) or is_file(spec.base / script):
        return None
    beside = [file.name for file in spec.base.glob("*.py")]
    return Problem(
        f"there is no file {script!r} in {spec.base}", hint=nearest(script, beside) if beside else ""
    )


def _knob_problems(spec: CommandObjective) -> list[Problem]:
    """That every configuration would measure the same, where that is certain."""
    why = hands_nothing(spec)
    expected = '"--name={name}" for each knob, where the program takes it'
    hint = "or let the program ask: with autotune.run() as run: value = run.knob(name, default)"
    return [Problem(why, None, expected, hint)] if why else []


def _metric_problems(spec: CommandObjective, metrics: Sequence[MetricSpec]) -> list[Problem]:
    """The metrics that the chosen source can never give."""
    if spec.metrics_from == "wall":
        given, source = {m.name for m in metrics if m.goal}, "the wall clock"
    elif spec.metrics_from == "pattern":
        given, source = set(spec.patterns), "no pattern"
    else:
        return []
    return [
        Problem(
            f"the metric {m.name!r} has a goal or a bound, but {source} "
            + ("cannot give it" if spec.metrics_from == "wall" else "is there for it"),
            hint="let the command print its metrics as a JSON object, or leave the bound out",
        )
        for m in metrics
        if m.is_judged and m.name not in given
    ]
